// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/statedir"
)

// boundInterval is how often machines that use more than they may have are looked at again.
const boundInterval = time.Minute

// boundMachines bounds machines that an earlier service has left running, until each is or the context ends. Machines
// that are booted from now on are bounded when they are.
func (s *Service) boundMachines(ctx context.Context) {
	for {
		err := local.Bound(s.cfg.State)
		note := unbounded(err)
		s.mu.Lock()
		first := s.boundNote == "" // its figures change each time
		s.boundNote = note
		s.mu.Unlock()
		if first && note != "" {
			s.cfg.Log.Warn("machines are not bounded", "note", note)
		}
		if err == nil || pause(ctx, boundInterval) != nil {
			return
		}
	}
}

// unboundedDisks says how many machines may fill the host's disk; nothing if none may.
func unboundedDisks(dir statedir.Dir) string {
	count, err := local.UnboundedDisks(dir)
	if err != nil {
		return "whether machines' disks have a bound is not known: " + err.Error()
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("machines' disks have no bound: %d of an earlier version, or of a host without mkfs.ext4 (package e2fsprogs) or loop devices, may fill this host's; muster delete machine NAME replaces one", count)
}

// unbounded says why machines are not held to their bounds; nothing if they are.
func unbounded(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("some machines that ran before an upgrade are not held to their memory and processes yet (%s); nothing is ended for that, and they are when they use less, or boot next",
		strings.ReplaceAll(err.Error(), "\n", "; "))
}
