// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/hostreserve"
	"muster.dev/muster/internal/platform/sparsedisk"
	"muster.dev/muster/internal/platform/statedir"
)

// Disks of machines together may hold more than the host's disk. Before it is full, at its reserve
// ([hostreserve.Of]), the machine whose disk has grown most since is stopped, as by a power loss: etcd goes on
// writing, and so do all other machines.

const (
	// reserveInterval is how often the room of the host's disk is looked at, and reserveHurry how often when there is
	// less than twice the reserve.
	reserveInterval = time.Second
	reserveHurry    = 100 * time.Millisecond
	// reserveShare of the reserve is what each machine's disk may grow into it, before the machine is stopped: all that
	// a host can have together do not use it up.
	reserveShare = 64
	// bootShare of the reserve must be free above it before a machine that was stopped is booted again.
	bootShare = 4
)

// reserveFile is in the directory of a machine that was stopped for the reserve.
const reserveFile = "stopped-for-reserve"

// room is how much of a disk there is, in bytes, and how much the host has in memory of files that were written.
type room struct{ total, available, dirty int64 }

// reserve is the room that is not a machine's to take.
func (r room) reserve() int64 { return hostreserve.Of(r.total) }

// left is the room when what is in memory has been written: it may be for this disk, and nothing stops it any more. So
// much as the reserve counts, at most: it may be for another disk, too.
func (r room) left() int64 { return r.available - min(r.dirty, r.reserve()) }

// boots is the room with which a machine that was stopped boots again.
func (r room) boots() int64 { return r.reserve() + r.reserve()/bootShare }

// roomOf looks at the disk that a state directory is on.
func roomOf(dir statedir.Dir) (room, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(string(dir), &stat); err != nil {
		return room{}, fmt.Errorf("looking at the disk of %s: %w", dir, err)
	}
	dirty, err := host.MemoryDirty()
	if err != nil {
		return room{}, err
	}
	return room{total: int64(stat.Blocks) * stat.Bsize, available: int64(stat.Bavail) * stat.Bsize, dirty: dirty}, nil //nolint:gosec // G115: disks are smaller
}

// growth knows how much of the host's disk each machine's had taken, in bytes, when there was last more room than the
// reserve.
type growth map[string]int64

// stop decides which machine to stop, if any: the one that has grown most since there was more room than the reserve,
// and by more than its share of it.
func (g *growth) stop(r room, taken map[string]int64) (id string) {
	if r.left() >= r.reserve() || *g == nil {
		*g = taken
		return ""
	}
	most := r.reserve() / reserveShare
	for one, now := range taken {
		before, known := (*g)[one]
		if !known {
			(*g)[one] = now
			continue
		}
		if grown := now - before; grown > most || grown == most && id != "" && one < id {
			id, most = one, grown
		}
	}
	return id
}

// KeepReserve stops machines that take the room which the host needs itself, until the context ends.
func (p *Provider) KeepReserve(ctx context.Context) error {
	var grown growth
	said := ""
	for {
		pause := reserveInterval
		now, err := roomOf(p.config.State)
		if err == nil {
			err = p.keepReserve(ctx, &grown, now)
			if now.left() < 2*now.reserve() {
				pause = reserveHurry
			}
		}
		if err == nil {
			said = ""
		} else if ctx.Err() == nil && err.Error() != said {
			p.config.Log.Error("the room of the host's disk is not looked after", "error", err)
			said = err.Error()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// keepReserve stops a machine if one has to be.
func (p *Provider) keepReserve(ctx context.Context, grown *growth, now room) error {
	ids, err := p.store.IDs()
	if err != nil {
		return err
	}
	taken := map[string]int64{}
	for _, id := range ids {
		bytes, err := sparsedisk.Written(p.config.State.MachineDisk(id))
		if errors.Is(err, fs.ErrNotExist) { // it has a directory
			continue
		}
		if err != nil {
			return err
		}
		taken[id] = bytes
	}
	for {
		id := grown.stop(now, taken)
		if id == "" {
			return nil
		}
		(*grown)[id] = taken[id] // what is written after it has ended was in memory
		pid, running, err := p.find(id)
		if err != nil {
			return err
		}
		if running {
			return p.stopForReserve(ctx, id, pid, now)
		}
	}
}

// stopForReserve ends a machine as a power loss does.
func (p *Provider) stopForReserve(ctx context.Context, id string, pid int, now room) error {
	// Before it ends: whoever looks after machines boots one that has. Where not even this can be written, it ends all
	// the same.
	err := os.WriteFile(filepath.Join(p.store.Path(id), reserveFile), nil, 0o600)
	p.config.Log.Error("a machine is stopped: its disk took room that the host needs itself", "machine", id, "left", now.left(), "reserve", now.reserve())
	if err := errors.Join(err, endProcess(ctx, pid, 0)); err != nil {
		return fmt.Errorf("stopping machine %s for the reserve of the host's disk: %w", id, err)
	}
	return nil
}

// checkReserve refuses to boot a machine that was stopped for the reserve, until there is room.
func (p *Provider) checkReserve(id string) error {
	mark := filepath.Join(p.store.Path(id), reserveFile)
	if _, err := os.Lstat(mark); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // G703: a machine's own directory
		return nil
	}
	now, err := roomOf(p.config.State)
	if err != nil {
		return err
	}
	if err := now.check(p.config.State, id); err != nil {
		return err
	}
	return os.Remove(mark) //nolint:gosec // G703: the same
}

// check says why a machine that was stopped is not booted yet.
func (r room) check(dir statedir.Dir, id string) error {
	if r.left() >= r.boots() {
		return nil
	}
	return fmt.Errorf("%w: machine %s was stopped, whose disk had grown most. It boots again when the disk of %s has %d MiB left, of which there are %d: free some space, or muster delete machine %s",
		machine.ErrDiskReserve, id, dir, r.boots()>>20, r.left()>>20, id)
}
