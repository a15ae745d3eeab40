// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

// Discard ends a machine of a state directory and removes what it has outside of it, whatever its record says or
// whether there is one at all. Its link goes with its network namespace, its mounts with its mount namespace. The disk
// is unmounted and stays.
func Discard(ctx context.Context, dir statedir.Dir, cgroups host.Cgroups, id string) error {
	if machine.ValidateID(id) != nil {
		return nil //nolint:nilerr // a file that is none of a machine's
	}
	running, err := Running(dir)
	if err != nil {
		return err
	}
	if pid, ok := running[id]; ok {
		if err := endProcess(ctx, pid, 0); err != nil {
			return fmt.Errorf("ending machine %s: %w", id, err)
		}
	}
	if err := cgroups.Remove(cgroupName(dir, id), endPatience); err != nil {
		return fmt.Errorf("removing machine %s: %w", id, err)
	}
	if err := ReleaseDisk(dir, id); err != nil {
		return fmt.Errorf("removing machine %s: %w", id, err)
	}
	return nil
}
