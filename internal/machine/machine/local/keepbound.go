// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/steps"
)

// boundInterval is how often machines that use more than they may have are looked at again.
const boundInterval = time.Minute

// KeepBound bounds machines that an earlier service has left running, until each is or the context ends, and notes each
// time why machines are not held to their bounds; nothing if they are. Machines that are booted from now on are bounded
// when they are.
func KeepBound(ctx context.Context, dir statedir.Dir, log *slog.Logger, tell func(note string)) {
	for first := true; ; {
		err := Bound(dir)
		note := Unbounded(err)
		tell(note)
		if first && note != "" { // its figures change each time
			log.Warn("machines are not bounded", "note", note)
		}
		first = note == ""
		if err == nil || steps.Pause(ctx, boundInterval) != nil {
			return
		}
	}
}

// Unbounded says why machines are not held to their bounds, by the error of [Bound]; nothing if they are.
func Unbounded(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("some machines that ran before an upgrade are not held to their memory and processes yet (%s); nothing is ended for that, and they are when they use less, or boot next",
		strings.ReplaceAll(err.Error(), "\n", "; "))
}

// DisksNote says how many machines may fill the host's disk; nothing if none may.
func DisksNote(dir statedir.Dir) string {
	count, err := UnboundedDisks(dir)
	if err != nil {
		return "whether machines' disks have a bound is not known: " + err.Error()
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("machines' disks have no bound: %d of an earlier version, or of a host without mkfs.ext4 (package e2fsprogs) or loop devices, may fill this host's; muster delete machine NAME replaces one", count)
}
