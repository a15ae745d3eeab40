// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/sparsedisk"
	"muster.dev/muster/internal/platform/statedir"
)

// diskName is what the loop device of a machine's disk is called: not as those are that machines may be lent
// ([Provider.CheckLoops]).
func diskName(id string) string { return "machine-disk-" + id }

// prepareDisk mounts the disk of a machine that does not run, and makes that of a new one: a file system in a file. A
// machine of an earlier version, or that was launched where the host could not make one, has a directory and keeps it.
func (p *Provider) prepareDisk(ctx context.Context, record machine.Record) error {
	id := record.ID
	if err := ReleaseDisk(p.config.State, id); err != nil { // of an earlier boot
		return err
	}
	file, at := p.config.State.MachineDisk(id), filepath.Join(p.store.Path(id), rootDir)
	has, err := hasDisk(p.config.State, id)
	if err != nil {
		return err
	}
	if !has {
		if used, err := isUsed(at); err != nil || used {
			return err
		}
		size := max(cmp.Or(record.DiskSize, machine.DefaultDiskSize), v1alpha1.MinDisk)
		if err := sparsedisk.Make(ctx, file, int64(size)<<30); err != nil {
			return p.unbounded(id, fmt.Errorf("making the machine's disk: %w", err))
		}
	}
	if err := sparsedisk.Mount(ctx, file, at, diskName(id)); err != nil {
		err = fmt.Errorf("mounting the machine's disk: %w", err)
		if has || !errors.Is(err, sparsedisk.ErrUnsupported) {
			return err
		}
		return errors.Join(p.unbounded(id, err), os.Remove(file)) //nolint:gosec // G703: a machine's own directory
	}
	return p.withdrawDisk(at)
}

// withdrawDisk takes the device of a disk that is mounted from every machine that was lent one of its number, which a
// program of the host has detached since.
func (p *Provider) withdrawDisk(at string) error {
	var disk unix.Stat_t
	if err := unix.Stat(at, &disk); err != nil {
		return fmt.Errorf("looking at the machine's disk: %w", err)
	}
	return p.WithdrawLoops(int(unix.Minor(disk.Dev)))
}

// unbounded lets a new machine have a directory in place of a disk, if that is all that the host can give.
func (p *Provider) unbounded(id string, err error) error {
	if !errors.Is(err, sparsedisk.ErrUnsupported) {
		return err
	}
	p.config.Log.Warn("the disk of a machine has no bound", "machine", id, "error", err)
	return nil
}

// isUsed reports whether a directory has anything in it.
func isUsed(dir string) (bool, error) {
	file, err := os.Open(dir) //nolint:gosec // G304: a machine's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	_, err = file.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// hasDisk reports whether a machine has a disk of its own, mounted or not.
func hasDisk(dir statedir.Dir, id string) (bool, error) {
	size, err := sizeOfDisk(dir, id)
	return size > 0, err
}

// sizeOfDisk is how much a machine's disk can hold, in bytes; 0 if it is a directory.
func sizeOfDisk(dir statedir.Dir, id string) (int64, error) {
	info, err := os.Lstat(dir.MachineDisk(id)) //nolint:gosec // G703: a machine's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// ReleaseDisk unmounts the disk of a machine that does not run, after the loop devices are detached that the machine
// had. The content of the disk stays.
func ReleaseDisk(dir statedir.Dir, id string) error {
	if machine.ValidateID(id) != nil {
		return nil //nolint:nilerr // a file that is none of a machine's
	}
	if err := detachLoops(dir, id); err != nil {
		return err
	}
	if has, err := hasDisk(dir, id); err != nil || !has {
		return err
	}
	if err := sparsedisk.Unmount(filepath.Join(dir.Machine(id), rootDir)); err != nil {
		return fmt.Errorf("unmounting the disk of machine %s: %w", id, err)
	}
	return nil
}

// UnboundedDisks is how many machines of a state directory have no disk of their own, but a directory that may fill the
// host's.
func UnboundedDisks(dir statedir.Dir) (count int, err error) {
	entries, err := os.ReadDir(dir.Machines())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("looking for machines: %w", err)
	}
	for _, entry := range entries {
		id := entry.Name()
		if machine.ValidateID(id) != nil {
			continue
		}
		has, err := hasDisk(dir, id)
		if err != nil {
			return 0, err
		}
		if has {
			continue
		}
		used, err := isUsed(filepath.Join(dir.Machine(id), rootDir))
		if err != nil {
			return 0, err
		}
		if used {
			count++
		}
	}
	return count, nil
}
