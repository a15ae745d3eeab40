// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/hostreserve"
)

// Space is how much room the host's file system has for volumes, in bytes and in files.
type Space struct{ Total, Available, Files, FilesAvailable int64 }

// Reserve is the room, in bytes, that neither volumes nor machines are to take ([hostreserve.Of]).
func (s Space) Reserve() int64 { return hostreserve.Of(s.Total) }

// Room is what new volumes may be promised, in bytes.
func (s Space) Room() int64 {
	if s.Files > 0 && s.FilesAvailable <= s.Files/100 { // some file systems do not count files
		return 0
	}
	return max(s.Available-s.Reserve(), 0)
}

// Space looks at the file system of the host that the store is on.
func (s *Store) Space() (Space, error) {
	dir := s.root
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		dir = filepath.Dir(dir)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return Space{}, fmt.Errorf("looking at the disk of %s: %w", dir, err)
	}
	size := stat.Bsize
	return Space{
		Total: int64(stat.Blocks) * size, Available: int64(stat.Bavail) * size, //nolint:gosec // G115: disks are smaller
		Files: int64(stat.Files), FilesAvailable: int64(stat.Ffree), //nolint:gosec // G115: the same
	}, nil
}

// Usage is what is written in a directory: bytes on the disk, and files, the directory among them.
type Usage struct{ Bytes, Files int64 }

// Usage counts what is written in a directory of a file system. A file with two names in it counts twice.
func (s *Store) Usage(ctx context.Context, at Place) (Usage, error) {
	dir, err := s.open(at)
	if err != nil {
		return Usage{}, err
	}
	defer func() { _ = dir.Close() }()
	var usage Usage
	err = usage.add(ctx, dir, 0)
	return usage, err
}

// blockSize is the unit of st_blocks (stat(2)).
const blockSize = 512

var errDeep = errors.New("directories are nested too deeply to be counted")

func (u *Usage) add(ctx context.Context, dir *os.File, depth int) error {
	if depth > maxCloneDepth {
		return errDeep
	}
	var own unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &own); err != nil {
		return fmt.Errorf("looking at %s: %w", dir.Name(), err)
	}
	u.Files, u.Bytes = u.Files+1, u.Bytes+own.Blocks*blockSize
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if err := u.addName(ctx, dir, name, depth); err != nil {
				return err
			}
		}
		if err != nil || len(names) == 0 {
			return nil //nolint:nilerr // the end, or a directory that has just been removed
		}
	}
}

func (u *Usage) addName(ctx context.Context, dir *os.File, name string, depth int) error {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil // it has just been removed
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		u.Files, u.Bytes = u.Files+1, u.Bytes+stat.Blocks*blockSize
		return nil
	}
	child, err := openBelow(dir, name)
	if err != nil {
		return nil // the same, or a link by now
	}
	defer func() { _ = child.Close() }()
	return u.add(ctx, child, depth+1)
}
