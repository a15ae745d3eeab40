// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/storage/efs"
)

// MakeDisk makes the disk of a volume: a file of that size without anything in it, which takes room as it is written.
// It and the directories above it are root's. An existing disk stays as it is.
func (s *Store) MakeDisk(id, at string, size int64) error {
	err := s.makeAt(Place{FileSystemID: id, Path: at}, func(path string) error {
		disk, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(disk.Truncate(size), disk.Sync(), disk.Close())
	})
	if err == nil {
		var made *os.File
		if made, err = s.OpenDisk(id, at, true); err == nil {
			return made.Close()
		}
	}
	return fmt.Errorf("making disk %s of file system %s: %w", at, id, err)
}

// OpenDisk opens the disk of a volume. The error is [fs.ErrNotExist] if it is not there.
func (s *Store) OpenDisk(id, at string, readOnly bool) (*os.File, error) {
	return s.openDisk(Place{FileSystemID: id, Path: at}, readOnly)
}

func (s *Store) openDisk(at Place, readOnly bool) (*os.File, error) {
	if err := errors.Join(efs.CheckFileSystemID(at.FileSystemID), efs.CheckPath(at.Path)); err != nil {
		return nil, err
	}
	parent, err := s.openParent(at)
	if err != nil {
		return nil, err
	}
	defer func() { _ = parent.Close() }()
	flags := unix.O_RDWR
	if readOnly {
		flags = unix.O_RDONLY
	}
	disk, err := openRegular(parent, path.Base(at.Path), flags)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: at.Path, Err: err}
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(disk.Fd()), &stat); err != nil || stat.Nlink != 1 {
		_ = disk.Close()
		return nil, fmt.Errorf("%s of file system %s is not a disk: it must be a regular file with one name", at.Path, at.FileSystemID)
	}
	return disk, nil
}

// GrowDisk lets a disk have at least that size.
func (s *Store) GrowDisk(id, at string, size int64) error {
	disk, err := s.OpenDisk(id, at, false)
	if err != nil {
		return err
	}
	defer func() { _ = disk.Close() }()
	info, err := disk.Stat()
	if err != nil {
		return err
	}
	if info.Size() >= size {
		return nil
	}
	if err := disk.Truncate(size); err != nil {
		return fmt.Errorf("growing disk %s of file system %s: %w", at, id, err)
	}
	return disk.Sync()
}

// DiskUsage is how large a disk is, and how much of it has been written, in bytes.
func (s *Store) DiskUsage(at Place) (size, written int64, err error) {
	disk, err := s.openDisk(at, true)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = disk.Close() }()
	var stat unix.Stat_t
	if err := unix.Fstat(int(disk.Fd()), &stat); err != nil {
		return 0, 0, err
	}
	return stat.Size, stat.Blocks * blockSize, nil
}

// Root is the directory that everything is below.
func (s *Store) Root() string { return s.root }
