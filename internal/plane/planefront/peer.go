// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/process"
)

// end ends a serving front that does not answer. Its connections break, and clients make new ones, which it would not
// accept.
func (f *Front) end(ctx context.Context, old *net.UnixConn) error {
	pid, err := handover.Peer(old)
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
