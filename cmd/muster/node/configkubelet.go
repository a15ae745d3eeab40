// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/thishost"
	"muster.dev/muster/internal/node/kubeletcheck"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// ownDirectory is where this program is, and those that were built with it.
func ownDirectory() (string, error) {
	self, err := os.Executable()
	return filepath.Dir(self), err
}

// checkKubelet are the problems that the kubelet's own validation finds. Local machines have the processors and the
// memory of their host, so the capacity is this machine's. They are not looked for where the program that validates is
// not beside this one; the machine does so when it boots.
func (c *nodeConfigCommand) checkKubelet(cmd *cobra.Command, f renderFlags, spec nodeconfig.Spec, layout render.Layout) (nodeconfig.Problems, error) {
	if !kubeletcheck.Needed(spec) {
		return nil, nil
	}
	dir, err := c.binDir()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, kubeletcheck.Program)
	if !terminal.Exists(program) {
		return nil, nil
	}
	own, err := c.machine()
	if err != nil {
		return nil, err
	}
	return kubeletProblems(cmd.Context(), program, spec, f.anyMachine(), own, layout)
}

// kubeletProblems asks the program at a path.
func kubeletProblems(ctx context.Context, program string, spec nodeconfig.Spec, instance render.Instance, own thishost.Hardware, layout render.Layout) (nodeconfig.Problems, error) {
	files, err := render.KubeletFiles(spec, instance, render.Facts{CPUs: own.CPUs, MemoryBytes: own.MemoryBytes, CgroupVersion: own.CgroupVersion}, layout)
	if err != nil {
		return nil, err
	}
	err = kubeletcheck.Check(ctx, kubeletcheck.Exec(program), files, render.KubeletArgs(spec, instance, layout, false),
		kubeletcheck.Machine{CPUs: own.CPUs, MemoryBytes: own.MemoryBytes})
	if problems, ok := errors.AsType[nodeconfig.Problems](err); ok {
		return problems, nil
	}
	return nil, err
}
