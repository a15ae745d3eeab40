// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The first argument of processes of skew's own.
const (
	roleHerald = "-herald"
	roleTracer = "-tracer"
)

// tracing is what a tracer says when it traces.
const tracing = "tracing\n"

// become replaces this process by a command whose clock is wrong. It returns only if that fails.
func become(offset time.Duration, command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	// One thread is traced and executes the command, and the others end with that (execve(2)).
	runtime.LockOSThread()
	// Where Yama is, only parents may trace unless told so; where it is not, nobody need be told.
	if err := unix.Prctl(unix.PR_SET_PTRACER, unix.PR_SET_PTRACER_ANY, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("allowing to be traced: %w", err)
	}
	if err := startTracer(offset, unix.Gettid()); err != nil {
		return err
	}
	if err := installFilter(); err != nil {
		return err
	}
	return fmt.Errorf("executing %s: %w", path, syscall.Exec(path, command, os.Environ())) //nolint:gosec // G702: that is what it is for
}

// startTracer returns when a thread is traced. The tracer is started by a process that ends at once: it is no child of
// the command's, which may wait for all children that it has.
func startTracer(offset time.Duration, thread int) error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making pipe: %w", err)
	}
	defer func() { _ = read.Close() }()
	started, err := start(roleHerald, write, offset.String(), strconv.Itoa(thread))
	if err != nil {
		return errors.Join(err, write.Close())
	}
	if err := write.Close(); err != nil {
		return fmt.Errorf("closing pipe: %w", err)
	}
	said, err := io.ReadAll(io.LimitReader(read, 1<<10))
	if _, waited := started.Wait(); waited != nil {
		return fmt.Errorf("waiting for who starts the tracer: %w", waited)
	}
	if err != nil {
		return fmt.Errorf("hearing of the tracer: %w", err)
	}
	if string(said) != tracing {
		return fmt.Errorf("the tracer does not trace: %s", strings.TrimSpace(string(said)))
	}
	return nil
}

// herald starts the tracer.
func herald(args []string) error {
	_, err := start(roleTracer, os.NewFile(3, "pipe"), args...)
	return err
}

// start starts this program in another role, with a pipe as its fourth file. Of the command's files it has standard
// error alone.
func start(role string, pipe *os.File, args ...string) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening files of the tracer's: %w", err)
	}
	defer func() { _ = null.Close() }()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding skew itself: %w", err)
	}
	process, err := os.StartProcess(self, append([]string{"skew", role}, args...), &os.ProcAttr{ //nolint:gosec // G702: itself
		Dir: "/", Env: []string{}, Files: []*os.File{null, null, os.Stderr, pipe}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("starting the tracer: %w", err)
	}
	return process, nil
}
