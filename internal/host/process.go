// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Init is a process that is number one of a process namespace directly below the caller's: a machine.
type Init struct {
	PID         int
	Environment map[string]string
}

// Inits finds the processes of this user that are number one of a namespace directly below the caller's and for which
// match is true. A process in a pod may have any environment it likes, but cannot be one of these: a container's first
// process is two namespaces down.
func Inits(match func(Init) bool) ([]Init, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []Init
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// What cannot be read belongs to somebody else, or has just ended.
		if process, ok := readInit(pid); ok && match(process) {
			found = append(found, process)
		}
	}
	return found, nil
}

func readInit(pid int) (Init, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	var stat syscall.Stat_t
	if err := syscall.Stat(dir, &stat); err != nil || int(stat.Uid) != os.Geteuid() {
		return Init{}, false
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil || !isInit(string(status)) {
		return Init{}, false
	}
	raw, err := readEnvironment(dir)
	if err != nil {
		return Init{}, false
	}
	process := Init{PID: pid, Environment: map[string]string{}}
	for variable := range strings.SplitSeq(string(raw), "\x00") {
		if name, value, ok := strings.Cut(variable, "="); ok {
			process.Environment[name] = value
		}
	}
	return process, true
}

// execPatience is how long an empty environment is read again: between a machine's two programs it is empty for a moment,
// while the kernel replaces the memory that holds it (execve(2)). A machine taken for stopped then would be booted twice.
const execPatience = 50 * time.Millisecond

func readEnvironment(dir string) ([]byte, error) {
	deadline := time.Now().Add(execPatience)
	for {
		raw, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || len(raw) > 0 || time.Now().After(deadline) {
			return raw, err
		}
		time.Sleep(time.Millisecond)
	}
}

// isInit reads a status file: the process lives, and its numbers (NSpid, one per namespace, from the reader's inwards)
// are two, of which the inner is 1.
func isInit(status string) bool {
	numbers, alive := []string{}, false
	for line := range strings.Lines(status) {
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "State":
			state := strings.TrimSpace(value)
			alive = !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
		case "NSpid":
			numbers = strings.Fields(value)
		}
	}
	return alive && len(numbers) == 2 && numbers[1] == "1"
}

// Handle refers to one process for good: unlike its number, it never comes to mean another (pidfd_open(2)).
type Handle struct {
	PID int
	fd  int
}

// Hold takes hold of the process with a number.
func Hold(pid int) (*Handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("taking hold of process %d: %w", pid, err)
	}
	return &Handle{PID: pid, fd: fd}, nil
}

// Close lets go of the process, which it does not end.
func (h *Handle) Close() { _ = unix.Close(h.fd) }

// Signal sends a signal. A process that has ended already is no error.
func (h *Handle) Signal(signal syscall.Signal) error {
	if err := unix.PidfdSendSignal(h.fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signalling process %d: %w", h.PID, err)
	}
	return nil
}

// Wait returns when the process has ended, or with the context's error.
func (h *Handle) Wait(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
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
