// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/removetree"
	"muster.dev/muster/internal/platform/statedir"
)

// DiscardCluster removes what is left of a cluster's machines: their controllers terminate them before, but for a
// record that was damaged or made in the moment of a crash.
func DiscardCluster(ctx context.Context, dir statedir.Dir, cluster string) error {
	entries, err := os.ReadDir(dir.Machines())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading directory of machines to remove: %w", err)
	}
	for _, entry := range entries {
		path := dir.Machine(entry.Name())
		record, err := machine.ReadRecord(filepath.Join(path, machine.RecordFile))
		if err != nil || record.Cluster != cluster {
			continue
		}
		if Possible() {
			cgroups, err := host.ReadCgroups()
			if err != nil {
				return err
			}
			if err := Discard(ctx, dir, cgroups, entry.Name()); err != nil {
				return err
			}
		}
		if err := removetree.RemoveAll(path); err != nil {
			return fmt.Errorf("removing machine %s: %w", entry.Name(), err)
		}
	}
	return nil
}

// DiscardAll removes what machines have outside the state directory. It reads no record that a crash could have
// damaged: the names of the machines' folders are enough.
func DiscardAll(ctx context.Context, dir statedir.Dir) error {
	cgroups, err := host.ReadCgroups()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir.Machines())
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("reading directory of machines to remove: %w", err)
	}
	for _, entry := range entries {
		if err := Discard(ctx, dir, cgroups, entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseDisks unmounts the disks of all machines, none of which runs, after the loop devices are detached that the
// machines had.
func ReleaseDisks(dir statedir.Dir) error {
	entries, err := os.ReadDir(dir.Machines())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for machines: %w", err)
	}
	for _, entry := range entries {
		if err := ReleaseDisk(dir, entry.Name()); err != nil {
			return err
		}
	}
	return nil
}
