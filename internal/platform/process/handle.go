// SPDX-License-Identifier: Apache-2.0

// Package process reads and holds processes of this machine.
package process

import (
	"context"
	"errors"
	"fmt"
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
	fd, err := unix.PidfdOpen(pid, 0)
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

// Wait returns when the process has ended, or with the context's cause.
func (h *Handle) Wait(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for process %d to end: %w", h.PID, context.Cause(ctx))
		}
		// Its end wakes the poll at once; now and then it wakes by itself to look at the context.
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, int((100 * time.Millisecond).Milliseconds())) //nolint:gosec // G115: a file descriptor fits
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for process %d to end: %w", h.PID, err)
		}
		if ready > 0 {
			return nil
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
