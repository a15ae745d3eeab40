// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Process is a program that was started here. Signals reach it and no other: it is known by a handle, not by its
// number.
type Process struct {
	Name string
	PID  int
	Log  string // file with all that it printed

	command *exec.Cmd
	ended   chan struct{}
}

// Environment marks the processes of a control plane, with its directory.
const Environment = "MUSTER_TEST_PLANE"

// launch starts a program that dies with this process. The kernel sends the parent's death signal when the *thread*
// that started a child ends (prctl(2)), so that thread is kept until the child has ended.
func launch(name, log, path string, args ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log of %s: %w", name, err)
	}
	p := &Process{Name: name, Log: log, command: exec.Command(path, args...), ended: make(chan struct{})} //nolint:noctx // it is ended by Kill or Stop
	p.command.Dir = filepath.Dir(log)
	p.command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + filepath.Dir(log), Environment + "=" + filepath.Dir(log)}
	p.command.Stdout, p.command.Stderr = file, file
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = file.Close() }()
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait() // how it ended stands in its log
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p.PID = p.command.Process.Pid
	return p, nil
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Signal sends a signal; to one that has ended it does nothing.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.command.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s (process %d): %w", sig, p.Name, p.PID, err)
	}
	return nil
}

// Kill ends it in the hardest way and waits for its end.
func (p *Process) Kill() error {
	if err := p.Signal(os.Kill); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// Stop asks it to end and waits for that.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s (process %d) did not end when told to: %w", p.Name, p.PID, context.Cause(ctx))
	}
}

// Tail is the end of what it printed, for messages about what went wrong.
func (p *Process) Tail() string {
	raw, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-3000):])
}

// Wait asks until there is no error, the process ends, or the context does.
func (p *Process) Wait(ctx context.Context, what string, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s: %s has ended: %w; it printed at last:\n%s", what, p.Name, err, p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; %s printed at last:\n%s", what, err, p.Name, p.Tail())
		case <-time.After(25 * time.Millisecond):
		}
	}
}
