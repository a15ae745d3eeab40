// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/process"
	"muster.dev/muster/internal/platform/statedir"
)

// End shuts all machines of a state directory down at once, each by force if it takes longer than the grace period, and
// returns how many it were. It needs no service, and leaves disks, addresses and control groups.
func End(ctx context.Context, dir statedir.Dir, grace time.Duration) (ended int, err error) {
	for {
		found, err := Running(dir)
		if err != nil || len(found) == 0 {
			return ended, err
		}
		errs := make(chan error)
		for id, pid := range found {
			go func() {
				if err := endMachine(ctx, dir, pid, grace); err != nil {
					errs <- fmt.Errorf("stopping machine %s: %w", id, err)
					return
				}
				errs <- nil
			}()
		}
		for range found {
			err = errors.Join(err, <-errs)
		}
		if err != nil {
			return ended, err
		}
		ended += len(found)
	}
}

// endMachine ends the first process of a machine, if that still is what has the number.
func endMachine(ctx context.Context, dir statedir.Dir, pid int, grace time.Duration) error {
	handle, err := process.Hold(pid)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer handle.Close()
	if first, ok := host.InitAt(pid); !ok || !isMachine(dir, first) {
		return nil
	}
	return endHeld(ctx, handle, grace)
}
