// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/drill"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/platform/statedir"
)

var _ machine.Driller = (*Provider)(nil)

// Drill implements [machine.Driller]. Of a machine that does not run only the metadata changes: it has no disk that is
// mounted, no network and no programs.
func (p *Provider) Drill(ctx context.Context, id string, effect drill.Effect) error {
	defer p.lock(id)()
	record, err := p.store.Get(providerName, id)
	if err != nil {
		return err
	}
	if err := p.store.SetLeaves(id, effect.Leaves); err != nil {
		return err
	}
	_, running, err := p.find(id)
	if err == nil {
		err = cutOff(ctx, p.config.State, record, running && effect.NoNetwork)
	}
	if err != nil || !running {
		return err
	}
	disk, err := os.OpenRoot(filepath.Join(p.store.Path(id), rootDir))
	if err != nil {
		return fmt.Errorf("opening the disk of machine %s: %w", id, err)
	}
	defer func() { _ = disk.Close() }()
	return errors.Join(hold(disk, effect.Held), fillDisk(p.config.State, id, disk, effect.DiskFull))
}

// hold has the agent of a machine keep a program from running, and no other.
func hold(disk *os.Root, program string) error {
	for _, name := range drill.Held() {
		path := bootreport.HeldPrefix + name
		if name != program {
			if err := removeFrom(disk, path); err != nil {
				return fmt.Errorf("letting %s run: %w", name, err)
			}
			continue
		}
		file, err := openOn(disk, path)
		if err != nil {
			return fmt.Errorf("holding %s: %w", name, err)
		}
		if err := file.Close(); err != nil {
			return fmt.Errorf("holding %s: %w", name, err)
		}
	}
	return nil
}

// openOn opens a file on a machine's disk, and makes it if it is not there. The machine's root may have put something else in
// its place: a link leads nowhere outside the disk, and a named pipe without a reader is an error and not waited for.
func openOn(disk *os.Root, path string) (*os.File, error) {
	return disk.OpenFile(path, os.O_CREATE|os.O_WRONLY|unix.O_NONBLOCK, 0o600)
}

// removeFrom removes a file of a drill from a machine's disk. A directory with something in it is no file of a drill: the machine's root
// has made it, and lives with it.
func removeFrom(disk *os.Root, path string) error {
	err := disk.Remove(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

// fillDisk takes all space of a machine's disk, or gives it back. The blocks are reserved in the machine's file system and
// not written, so that the sparse file of the disk, and with it the host's disk, does not grow.
func fillDisk(dir statedir.Dir, id string, disk *os.Root, full bool) error {
	if !full {
		if err := removeFrom(disk, bootreport.FillerPath); err != nil {
			return fmt.Errorf("giving back the space of machine %s: %w", id, err)
		}
		return nil
	}
	all, err := sizeOfDisk(dir, id)
	if err != nil || all == 0 {
		return errors.Join(err, fmt.Errorf("the disk of machine %s is a directory of the host, whose disk must not be filled: a machine that is launched where the host can make disks has its own", id))
	}
	file, err := openOn(disk, bootreport.FillerPath)
	if err != nil {
		return fmt.Errorf("filling the disk of machine %s: %w", id, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("filling the disk of machine %s: %w", id, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("filling the disk of machine %s: %s is not a regular file there", id, bootreport.FillerPath)
	}
	// The rest is tried in halves: a file system keeps some of it for itself.
	for at, step := info.Size(), all; step >= 1<<16; {
		switch err := unix.Fallocate(int(file.Fd()), 0, at, step); {
		case err == nil:
			at += step
		case errors.Is(err, unix.ENOSPC):
			step /= 2
		default:
			return fmt.Errorf("filling the disk of machine %s: %w", id, err)
		}
	}
	return nil
}

// cutOff drops the packets of a machine, or lets them pass.
func cutOff(ctx context.Context, dir statedir.Dir, record machine.Record, cut bool) error {
	network, err := vpc.Open(dir.VPCs(), record.VPC)
	if errors.Is(err, fs.ErrNotExist) { // no packet passes there
		return nil
	}
	if err != nil {
		return err
	}
	return vpc.Cut(ctx, network, vpc.Interface{Machine: record.ID, Address: record.PrivateIP, PodRange: record.PodRange}, cut)
}
