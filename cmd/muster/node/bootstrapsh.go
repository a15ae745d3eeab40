// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/thishost"
	"muster.dev/muster/internal/node/agent"
	"muster.dev/muster/internal/node/bootstrapsh"
	"muster.dev/muster/internal/node/kubeletcheck"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/atomicfile"
)

// bootstrapScript is the name by which user data of EKS's Amazon Linux 2 nodes calls this program.
const bootstrapScript = "bootstrap.sh"

// CalledBootstrapScript reports whether a program name is that of the EKS bootstrap script.
func CalledBootstrapScript(name string) bool { return filepath.Base(name) == bootstrapScript }

// maxContainerdConfig bounds a file that user data names.
const maxContainerdConfig = 1 << 20

// RunBootstrapScript is /etc/eks/bootstrap.sh: it leaves what its arguments say as a NodeConfig in dir, where the node
// agent finds it.
func RunBootstrapScript(args []string, dir string, s terminal.Streams) int {
	err := bootstrapMachine(args, dir, s)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, bootstrapsh.ErrHelp):
		fmt.Fprint(s.Out, bootstrapsh.Usage())
		return 0
	}
	fmt.Fprintf(s.Err, "Error: %v\n", err)
	if err := noteRefused(dir, err); err != nil {
		fmt.Fprintf(s.Err, "Error: telling the node agent: %v\n", err)
	}
	if _, ok := errors.AsType[terminal.UsageError](err); ok {
		return 2
	}
	return 1
}

// noteRefused leaves the node agent word, since a script may go on after an error: the machine does not become a node
// then.
func noteRefused(dir string, why error) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: as on EKS's nodes; what is in it is root's
		return err
	}
	return atomicfile.Write(filepath.Join(dir, agent.RefusedBootstrap), []byte(nodeconfig.WithoutSecrets(why.Error())+"\n"), 0o600)
}

func bootstrapMachine(args []string, dir string, s terminal.Streams) error {
	result, err := bootstrapsh.Parse(args)
	if errors.Is(err, bootstrapsh.ErrHelp) {
		return err
	}
	if err != nil {
		return terminal.UsageError{Err: err}
	}
	for _, line := range result.Warnings {
		fmt.Fprintf(s.Err, "Warning: %s\n", line)
	}
	if path := result.ContainerdConfigFile; path != "" {
		config, err := terminal.ReadFile(path, "containerd's configuration", maxContainerdConfig)
		if err != nil {
			return fmt.Errorf("--containerd-config-file: %w", err)
		}
		result.Spec.Containerd.Config = string(config)
	}
	document, err := nodeconfig.Marshal(result.Spec)
	if err != nil {
		return err
	}
	if _, err := nodeconfig.Read([]nodeconfig.Source{{Name: bootstrapScript, Content: document}}, false); err != nil {
		return err
	}
	if err := agentRefuses(result.Spec); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: as on EKS's nodes; what is in it is root's
		return fmt.Errorf("making directory: %w", err)
	}
	path := filepath.Join(dir, "40-bootstrap.yaml")
	if err := atomicfile.Write(path, document, 0o600); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, agent.RefusedBootstrap)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forgetting that it was refused before: %w", err)
	}
	for _, line := range result.Understood {
		fmt.Fprintln(s.Out, line)
	}
	fmt.Fprintf(s.Out, "%s is written; the node agent goes on from there\n", path)
	return nil
}

// agentRefuses is what the node agent would refuse of what the arguments say, whatever else the machine is told.
func agentRefuses(spec nodeconfig.Spec) error {
	layout := render.MachineLayout()
	f := renderFlags{}
	problems := slices.DeleteFunc(f.problems(spec, layout), func(line string) bool { return strings.Contains(line, ": Required value") })
	if len(problems) > 0 {
		return problems
	}
	dir, err := ownDirectory()
	if err != nil {
		return err
	}
	program := filepath.Join(dir, kubeletcheck.Program)
	if !kubeletcheck.Needed(spec) || !terminal.Exists(program) {
		return nil // the agent has it checked, too
	}
	own, err := thishost.ReadHardware()
	if err != nil {
		return err
	}
	if problems, err = kubeletProblems(context.Background(), program, spec, f.anyMachine(), own, layout); err != nil {
		return err
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}
