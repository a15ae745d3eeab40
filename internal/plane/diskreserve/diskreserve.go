// SPDX-License-Identifier: Apache-2.0

// Package diskreserve keeps control planes readable while the disk of the state directory is full. An etcd that cannot
// write ends, and cannot start again until there is room, so two things are done: a file holds some of the disk back, and
// goes when the rest is used up, and etcds are told to take no writes (package etcdspace), as long as there is not room
// for them and for that file again.
//
//	room left, in MiB        state      the file
//	less than 64             Full       is removed
//	more, with the file      Plenty     stays
//	320 and more             Plenty     is made
//	between                  Full if it was, else Narrow: etcds stay as they are
//
// A process that is killed at any moment leaves a file, a part of one or none, and the next one goes on from there.
package diskreserve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/statedir"
)

const (
	// Size is how much of the disk is held back, in bytes: as much as three segments of an etcd's log take.
	Size int64 = 192 << 20
	// low is how much of the disk is left when it is called full, in bytes: the next segment of an etcd's log takes as much.
	low int64 = 64 << 20
	// look is the pause between two looks at the disk.
	look = time.Second
)

// State is what etcds can have of the disk.
type State int

// The states; the package comment says what leads to them.
const (
	Narrow State = iota // not known, or not enough to call it Plenty
	Plenty
	Full
)

// Reserve is what is held back of one disk. It is safe for use by many at once.
type Reserve struct {
	dir string
	log *slog.Logger

	unable bool // the file system sets no blocks aside

	mu      sync.Mutex
	state   State
	changed chan struct{}
}

// New is the reserve of the disk that a state directory is on. Nothing is held back until it runs.
func New(dir statedir.Dir, log *slog.Logger) *Reserve {
	return &Reserve{dir: string(dir), log: log, changed: make(chan struct{})}
}

// Path is the file that holds a part of the disk back.
func Path(dir statedir.Dir) string { return filepath.Join(string(dir), "reserve") }

func (r *Reserve) path() string { return Path(statedir.Dir(r.dir)) }

// State is what etcds can have now, and a channel that is closed once that is something else.
func (r *Reserve) State() (State, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.changed
}

// Room is how many bytes of the disk can be used before it is called full.
func (r *Reserve) Room() (int64, error) {
	free, err := available(r.dir)
	return max(free-low, 0), err
}

// Run looks after the reserve until the context ends. The file stays.
func (r *Reserve) Run(ctx context.Context) {
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	told := false
	for {
		err := r.look()
		if err != nil && !told {
			r.log.Warn("no part of the disk is held back for control planes", "error", err)
		}
		told = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// look looks at the disk once.
func (r *Reserve) look() error {
	free, err := available(r.dir)
	if err != nil {
		return err
	}
	held := r.held()
	was, _ := r.State()
	is, hold := next(was, free, held)
	switch {
	case !hold:
		if err = os.Remove(r.path()); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	case hold && !held && !r.unable:
		err = r.take()
		r.unable = errors.Is(err, unix.EOPNOTSUPP)
	}
	r.set(is, free)
	return err
}

// next is the state that follows from another one, by how many bytes are free, and whether the reserve is held or is to
// be.
func next(was State, free int64, held bool) (is State, hold bool) {
	switch {
	case free < low:
		return Full, false
	case held, free >= Size+2*low:
		return Plenty, true
	case was == Full:
		return Full, false
	}
	return Narrow, false
}

// set notes a state, and tells of it.
func (r *Reserve) set(is State, free int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if is == r.state {
		return
	}
	switch {
	case is == Full:
		r.log.Error("the disk of the state directory is full: control planes take no writes until there is room", "free_mib", free>>20, "needed_mib", (Size+2*low)>>20)
	case r.state == Full:
		r.log.Info("the disk of the state directory has room again: control planes take writes", "free_mib", free>>20)
	}
	r.state = is
	close(r.changed)
	r.changed = make(chan struct{})
}

// held reports whether the reserve is there, whole. A copy of the file may have its size and take none of the disk.
func (r *Reserve) held() bool {
	const block = 512 // of stat(2), whatever the file system's are
	var stat unix.Stat_t
	err := unix.Stat(r.path(), &stat)
	return err == nil && stat.Size >= Size && stat.Blocks*block >= Size
}

// take makes the file. A file that is not whole is made whole.
func (r *Reserve) take() error {
	file, err := os.OpenFile(r.path(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("making the reserve of the disk: %w", err)
	}
	if err := errors.Join(unix.Fallocate(int(file.Fd()), 0, 0, Size), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("making the reserve of the disk: %w", err), os.Remove(r.path()))
	}
	return nil
}

// available is how many bytes of the disk of a directory a user can have that is not root.
func available(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("looking at the disk of %s: %w", dir, err)
	}
	return int64(stat.Bavail) * stat.Bsize, nil //nolint:gosec // G115: no disk has 2^63 bytes
}
