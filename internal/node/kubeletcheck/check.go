// SPDX-License-Identifier: Apache-2.0

// Package kubeletcheck validates a kubelet's configuration by the kubelet's own code before a kubelet runs with it.
// That code is in another program, kubelet-config-check, which is built from upstream's packages as the kubelet is and
// lies beside it.
package kubeletcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// Program is the name of the program.
const Program = "kubelet-config-check"

// exitRefused is how the program ends if it found problems.
const exitRefused = 1

// maxProblems bounds what is told.
const maxProblems = 50

// Machine is what a machine has; 0 is not known.
type Machine struct {
	CPUs        int   `json:"cpus"`
	MemoryBytes int64 `json:"memoryBytes"`
	// DiskBytes is the size of the file system that pods are on.
	DiskBytes int64 `json:"diskBytes"`
}

// Run runs the program with an input, and returns what it printed and how it ended.
type Run func(ctx context.Context, input []byte) (output []byte, exit int, err error)

// Needed reports whether a NodeConfig says anything of the kubelet that package render has not judged already.
func Needed(spec nodeconfig.Spec) bool {
	if len(spec.Kubelet.Config) > 0 {
		return true
	}
	for _, flag := range spec.Kubelet.Flags {
		if !strings.HasPrefix(flag, "--node-labels=") {
			return true
		}
	}
	return false
}

// Check returns all that a kubelet with these files and arguments would refuse, as [nodeconfig.Problems], or why that
// is not known.
func Check(ctx context.Context, run Run, files []render.File, args []string, machine Machine) error {
	config, dropIns := render.KubeletConfigs(files)
	input := struct {
		Config  json.RawMessage   `json:"config"`
		DropIns []json.RawMessage `json:"dropIns"`
		Args    []string          `json:"args"`
		Machine
	}{Config: config, Args: args, Machine: machine}
	for _, dropIn := range dropIns {
		input.DropIns = append(input.DropIns, dropIn)
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("checking the kubelet's configuration: %w", err)
	}
	output, exit, err := run(ctx, raw)
	if err != nil {
		return fmt.Errorf("checking the kubelet's configuration: %w", err)
	}
	var problems nodeconfig.Problems
	for line := range strings.Lines(string(output)) {
		if line = strings.TrimSpace(line); line != "" && len(problems) < maxProblems {
			problems = append(problems, "spec.kubelet: the kubelet refuses it: "+nodeconfig.WithoutSecrets(line))
		}
	}
	switch {
	case exit == 0 && len(problems) == 0:
		return nil
	case exit == exitRefused && len(problems) > 0:
		return problems
	}
	return fmt.Errorf("checking the kubelet's configuration: %s ended with exit status %d", Program, exit)
}

// Exec runs the program at a path.
func Exec(path string) Run {
	return func(ctx context.Context, input []byte) ([]byte, int, error) {
		command := exec.CommandContext(ctx, path)
		command.Stdin = bytes.NewReader(input)
		output, err := command.Output()
		if ended, ok := errors.AsType[*exec.ExitError](err); ok {
			return output, ended.ExitCode(), nil
		}
		return output, 0, err
	}
}
