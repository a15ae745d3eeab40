// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/process"
)

// end ends a serving front that does not answer. Its connections break, and clients make new ones, which it would not
// accept.
func (f *Front) end(ctx context.Context, old *net.UnixConn) error {
	pid, err := peer(old)
	if err != nil {
		return err
	}
	if pid == os.Getpid() || pid == 0 {
		return fmt.Errorf("the front that serves hangs, and process %d is not to be ended", pid)
	}
	hung, err := process.Hold(pid)
	if err != nil {
		return nil // it has ended
	}
	defer hung.Close()
	// It had the number while its socket was open.
	if err := old.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return err
	}
	if _, err := old.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	f.config.Log.Warn("the front before hangs and is ended", "process_id", pid, "no_answer_for", f.answerWithin)
	if err := hung.Signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("ending the front before, which hangs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.answerWithin)
	defer cancel()
	return hung.Wait(ctx)
}

// peer is the process at the other end of a connection: of a listener's, the process that listens.
func peer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		credentials, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("asking who is at the other end: %w", err)
	}
	return int(credentials.Pid), nil
}

// older reports whether a process was started before this one, in the order that the supervisor has them in (package
// supervise).
func older(pid int) bool {
	other, err := process.ReadStat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return false
	}
	own, err := process.ReadStat("/proc/self")
	return err == nil && (other.Ticks < own.Ticks || other.Ticks == own.Ticks && pid < os.Getpid())
}
