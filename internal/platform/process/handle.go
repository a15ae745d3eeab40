// SPDX-License-Identifier: Apache-2.0

// Package process reads and holds processes of this machine.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Handle refers to one process for good: unlike its number, it never comes to mean another (pidfd_open(2)).
type Handle struct {
	PID int
	fd  int
}

// Hold takes hold of the process that has the number now. The error of one that is gone is ESRCH.
func Hold(pid int) (*Handle, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("taking hold of process %d: %w", pid, err)
	}
	return &Handle{PID: pid, fd: fd}, nil
}

// Close lets go of the process, which it does not end.
func (h *Handle) Close() { _ = unix.Close(h.fd) }

// Signal sends a signal. If the process has ended already, the error is nil.
func (h *Handle) Signal(signal syscall.Signal) error {
	if err := unix.PidfdSendSignal(h.fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signalling process %d: %w", h.PID, err)
	}
	return nil
}

// Ended reports whether the process has ended.
func (h *Handle) Ended() bool {
	ready, err := poll(h.fd)
	return err == nil && ready
}

// Wait returns when the process has ended, or with the context's cause. It sleeps in the runtime's poller, so that a
// service that waits for many processes is not woken by those that run on.
func (h *Handle) Wait(ctx context.Context) error {
	failed := func(err error) error { return fmt.Errorf("waiting for process %d to end: %w", h.PID, err) }
	if ctx.Err() != nil {
		return failed(context.Cause(ctx))
	}
	// A descriptor of its own, since a deadline is for all who wait by one.
	own, err := unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return failed(err)
	}
	file := os.NewFile(uintptr(own), "pidfd")
	defer func() { _ = file.Close() }()
	waiter, err := file.SyscallConn()
	if err != nil {
		return failed(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(0, 1)) })
	defer stop()
	var polling error
	err = waiter.Read(func(fd uintptr) (ended bool) {
		ended, polling = poll(int(fd))
		return ended || polling != nil
	})
	switch {
	case polling != nil:
		return failed(polling)
	case err != nil && ctx.Err() != nil:
		return failed(context.Cause(ctx))
	case err != nil:
		return failed(err)
	}
	return nil
}

// poll asks the kernel whether the process of a descriptor has ended.
func poll(fd int) (ended bool, err error) {
	for {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // G115: a file descriptor fits
		if !errors.Is(err, unix.EINTR) {
			return ready > 0, err
		}
	}
}

// Stop asks the process to end with SIGTERM, and ends it if it has not after the grace period.
func (h *Handle) Stop(ctx context.Context, grace time.Duration) error {
	if err := h.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := h.Wait(waiting); err == nil || ctx.Err() != nil {
		return err
	}
	if err := h.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	return h.Wait(ctx)
}
