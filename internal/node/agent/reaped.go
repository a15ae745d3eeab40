// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/kubeletcheck"
)

// ended is how a program ended, and its output.
type ended struct {
	status         unix.WaitStatus
	output, errors []byte
}

// maxOutput is how much of what a program writes is read.
const maxOutput = 64 << 10

// reaped runs a program to its end by way of the reaper. Input and output are in memory.
func (a *agent) reaped(ctx context.Context, path string, args, env []string, input []byte) (e ended, err error) {
	var files [3]*os.File
	for i, content := range [][]byte{input, nil, nil} {
		if files[i], err = memory(content); err != nil {
			return e, err
		}
		defer func() { _ = files[i].Close() }()
	}
	pid, done, err := a.reaper.startWith(path, args, env, files[0], files[1], files[2])
	if err != nil {
		return e, err
	}
	select {
	case e.status = <-done:
	case <-ctx.Done():
		_ = unix.Kill(-pid, unix.SIGKILL)
		<-done
		return e, ctx.Err()
	}
	for i, into := range []*[]byte{&e.output, &e.errors} {
		if *into, err = io.ReadAll(io.NewSectionReader(files[i+1], 0, maxOutput)); err != nil {
			return e, fmt.Errorf("reading the output of %s: %w", path, err)
		}
	}
	return e, nil
}

// memory is a file that is on no disk.
func memory(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("muster", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "memory")
	if _, err := file.WriteAt(content, 0); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return file, nil
}

// runCheck is a [kubeletcheck.Run].
func (a *agent) runCheck(ctx context.Context, input []byte) ([]byte, int, error) {
	e, err := a.reaped(ctx, programPath(a, kubeletcheck.Program), nil, environment(), input)
	return append(e.output, e.errors...), e.status.ExitStatus(), err
}

// runTool is a [localdisk.Run].
func (a *agent) runTool(ctx context.Context, program string, args ...string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	e, err := a.reaped(ctx, path, args, toolEnvironment(), nil)
	if err == nil && (!e.status.Exited() || e.status.ExitStatus() != 0) {
		err = errors.New(describe(e.status))
	}
	if err != nil {
		return "", toolFailed(program, err, string(e.errors))
	}
	return string(e.output), nil
}
