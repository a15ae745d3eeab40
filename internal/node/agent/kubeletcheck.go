// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/kubeletcheck"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// checkPatience is how long the check of the kubelet's configuration may take.
const checkPatience = time.Minute

// checkKubelet has the kubelet's own validation judge what the kubelet is to run with, before it is written.
func (a *agent) checkKubelet(ctx context.Context, spec nodeconfig.Spec, files []render.File) error {
	if !kubeletcheck.Needed(spec) {
		return nil
	}
	machine := kubeletcheck.Machine{CPUs: a.facts.CPUs, MemoryBytes: a.facts.MemoryBytes}
	var disk unix.Statfs_t
	if err := unix.Statfs("/var/lib", &disk); err == nil {
		machine.DiskBytes = int64(disk.Blocks) * disk.Bsize //nolint:gosec // G115: no disk is that large
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	return kubeletcheck.Check(ctx, a.runCheck, files, render.KubeletArgs(spec, a.self(), render.MachineLayout(), false), machine)
}

// runCheck is a [kubeletcheck.Run] by way of the reaper. Input and output are in memory.
func (a *agent) runCheck(ctx context.Context, input []byte) ([]byte, int, error) {
	in, err := memory("input", input)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = in.Close() }()
	out, err := memory("output", nil)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = out.Close() }()
	pid, ended, err := a.reaper.startWith(filepath.Join(a.config.BinDir, kubeletcheck.Program), nil, environment(), in, out)
	if err != nil {
		return nil, 0, err
	}
	var status unix.WaitStatus
	select {
	case status = <-ended:
	case <-ctx.Done():
		_ = unix.Kill(-pid, unix.SIGKILL)
		<-ended
		return nil, 0, ctx.Err()
	}
	const most = 64 << 10
	output, err := io.ReadAll(io.NewSectionReader(out, 0, most))
	return output, status.ExitStatus(), err
}

// memory is a file that is on no disk.
func memory(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), name) //nolint:gosec // G115: a descriptor
	if _, err := file.WriteAt(content, 0); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return file, nil
}
