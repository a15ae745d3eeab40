// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// options follow threads, children and programs that are executed, stop at what the filter picks, and have the kernel
// kill all that is traced when the tracer ends.
const options = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC |
	unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL

// eventShift is where a status of wait tells which event stopped a thread (ptrace(2)).
const eventShift = 16

// trace traces a thread and all that comes of it, until nothing is left. A signal that is meant for the command's
// process group or unit is not for the tracer.
func trace(args []string) error {
	pipe := os.NewFile(3, "pipe")
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE)
	t, err := seize(args)
	if err != nil {
		_, _ = fmt.Fprintln(pipe, err)
		return err
	}
	if _, err := pipe.WriteString(tracing); err != nil {
		return fmt.Errorf("telling that it is traced: %w", err)
	}
	if err := pipe.Close(); err != nil {
		return fmt.Errorf("closing pipe: %w", err)
	}
	return t.loop()
}

// tracer answers for the clock on the wall. All of it is done on one thread, which is the one that traces.
type tracer struct{ offset time.Duration }

func seize(args []string) (tracer, error) {
	if len(args) != 2 {
		return tracer{}, errors.New("the tracer is told an offset and a thread")
	}
	offset, err := time.ParseDuration(args[0])
	if err != nil {
		return tracer{}, err
	}
	thread, err := strconv.Atoi(args[1])
	if err != nil {
		return tracer{}, err
	}
	runtime.LockOSThread()
	if err := ptrace(unix.PTRACE_SEIZE, thread, options); err != nil {
		return tracer{}, fmt.Errorf("tracing the command (it needs CAP_SYS_PTRACE, or the same user): %w", err)
	}
	return tracer{offset}, nil
}

func (t tracer) loop() error {
	for {
		var status unix.WaitStatus
		thread, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil:
			return fmt.Errorf("waiting for what is traced: %w", err)
		case !status.Stopped():
			continue
		}
		// A thread that was killed while it was stopped is gone.
		if err := t.stopped(thread, status); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
}

// stopped does what a thread has stopped for, and lets it go on.
func (t tracer) stopped(thread int, status unix.WaitStatus) error {
	sent := status.StopSignal()
	switch int(status) >> eventShift {
	case 0: // a signal is about to be delivered
		return ptrace(unix.PTRACE_CONT, thread, uintptr(sent))
	case unix.PTRACE_EVENT_SECCOMP:
		if err := t.answer(thread); err != nil {
			return err
		}
	case unix.PTRACE_EVENT_EXEC:
		if err := hideClocks(thread); err != nil {
			return err
		}
	case unix.PTRACE_EVENT_STOP:
		if stops(sent) { // all of the process has stopped, until a SIGCONT
			return ptrace(unix.PTRACE_LISTEN, thread, 0)
		}
	}
	return ptrace(unix.PTRACE_CONT, thread, 0)
}

func stops(s syscall.Signal) bool {
	return s == unix.SIGSTOP || s == unix.SIGTSTP || s == unix.SIGTTIN || s == unix.SIGTTOU
}

func ptrace(request, thread int, data uintptr) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(thread), 0, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
