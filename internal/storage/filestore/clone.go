// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/storage/efs"
)

// NoReflinkError says that the host's file system cannot share the content of two files.
type NoReflinkError struct {
	// Kind is what the file system is, such as ext4.
	Kind string
}

// Error implements error.
func (e *NoReflinkError) Error() string {
	return fmt.Sprintf("volumes are on %s, where files cannot share their content (reflink), as on XFS and btrfs", e.Kind)
}

// Place is a directory or disk of a file system, or a snapshot of one.
type Place struct {
	FileSystemID, Path string
	// Snapshot reports whether the path is among the snapshots, which are beside what clusters see.
	Snapshot bool
}

// tree is the directory of a file system that the path is below.
func (p Place) tree() string {
	if p.Snapshot {
		return snapshotsDir
	}
	return dataDir
}

// reflink lets a file have the content of another one, which the two share until one of them is written
// (ioctl_ficlone(2)).
func reflink(to, from *os.File) error {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
}

// CloneDirectory makes a directory with the content of another one: files, owners, modes, times, extended attributes,
// links. Each file is as it was at some moment; different files may be of different moments. The two directories share
// the content until it is written. An existing directory stays as it is.
func (s *Store) CloneDirectory(ctx context.Context, from, to Place) error {
	return s.directory(ctx, from, to, s.shared())
}

// CopyDirectory is [Store.CloneDirectory] where files cannot share content. Nobody may write what is copied. It tells
// how many bytes more have been copied, and ends with the error that it is answered.
func (s *Store) CopyDirectory(ctx context.Context, from, to Place, told func(bytes int64) error) error {
	return s.directory(ctx, from, to, copied(told))
}

func (s *Store) directory(ctx context.Context, from, to Place, content content) error {
	source, err := s.open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	return s.clone(from, to, source, func(made string) error {
		if err := os.Mkdir(made, 0o700); err != nil {
			return err
		}
		root, err := os.Open(made)
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
		c := cloner{content: content, root: root, linked: map[inode]*names{}, room: maxLinks}
		if err := c.directory(ctx, source, root, "", 0); err != nil {
			return err
		}
		return unix.Syncfs(int(root.Fd()))
	})
}

// CloneDisk makes a disk with the content of another one at one moment, and of at least a size. The two disks share the
// content until it is written. An existing disk stays as it is.
func (s *Store) CloneDisk(ctx context.Context, from, to Place, size int64) error {
	return s.disk(ctx, from, to, size, s.shared())
}

// CopyDisk is [Store.CloneDisk] where files cannot share content. Nobody may write what is copied. It tells how many
// bytes more have been copied, and ends with the error that it is answered.
func (s *Store) CopyDisk(ctx context.Context, from, to Place, size int64, told func(bytes int64) error) error {
	return s.disk(ctx, from, to, size, copied(told))
}

func (s *Store) disk(ctx context.Context, from, to Place, size int64, content content) error {
	source, err := s.openDisk(from, true)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	return s.clone(from, to, source, func(made string) error {
		disk, err := os.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		err = content(ctx, disk, source)
		if info, statErr := disk.Stat(); err == nil && statErr == nil && info.Size() < size {
			err = disk.Truncate(size)
		}
		return errors.Join(err, disk.Sync(), disk.Close())
	})
}

// clone makes a copy of a directory or disk, unless it is there.
func (s *Store) clone(from, to Place, source *os.File, create func(made string) error) error {
	if from.Path == "/" {
		return fmt.Errorf("the root of file system %s cannot be copied", from.FileSystemID)
	}
	err := s.makeAt(to, func(made string) error {
		if err := create(made); err != nil {
			return err
		}
		return s.isStill(from, source) // otherwise the copy may lack files that were removed meanwhile
	})
	if err != nil {
		return fmt.Errorf("copying %s of file system %s: %w", from.Path, from.FileSystemID, err)
	}
	return nil
}

// CanClone tries whether files of a file system can share their content. The error is a [*NoReflinkError] if they
// cannot.
func (s *Store) CanClone(id string) error {
	if err := efs.CheckFileSystemID(id); err != nil {
		return err
	}
	var files [2]*os.File
	for i := range files {
		file, err := os.OpenFile(filepath.Join(s.path(id), stagingDir, temporaryName()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("trying to copy in file system %s: %w", id, err)
		}
		defer func() { _, _ = os.Remove(file.Name()), file.Close() }()
		files[i] = file
	}
	if _, err := files[0].WriteString("content"); err != nil {
		return fmt.Errorf("trying to copy in file system %s: %w", id, err)
	}
	err := s.reflink(files[1], files[0])
	for _, no := range []error{unix.EOPNOTSUPP, unix.ENOTTY, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, no) {
			return &NoReflinkError{Kind: kind(files[0])}
		}
	}
	if err != nil {
		return fmt.Errorf("trying to copy in file system %s: %w", id, err)
	}
	return nil
}

// Has reports whether there is a directory or disk at a place.
func (s *Store) Has(at Place) (bool, error) {
	_, there, err := s.Since(at)
	return there, err
}

// Since is when what is at a place was put there, unless it was changed later, as snapshots never are; false if nothing
// is there.
func (s *Store) Since(at Place) (time.Time, bool, error) {
	if err := errors.Join(efs.CheckFileSystemID(at.FileSystemID), efs.CheckPath(at.Path)); err != nil {
		return time.Time{}, false, err
	}
	parent, err := s.openParent(at)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, err
	}
	defer func() { _ = parent.Close() }()
	var stat unix.Stat_t
	err = unix.Fstatat(int(parent.Fd()), path.Base(at.Path), &stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("looking at %s of file system %s: %w", at.Path, at.FileSystemID, err)
	}
	return time.Unix(stat.Ctim.Unix()), true, nil
}

// isStill reports an error if a directory or disk is not at its place any more: it may have been emptied while it was
// read.
func (s *Store) isStill(at Place, was *os.File) error {
	parent, err := s.openParent(at)
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	var is, before unix.Stat_t
	if err := unix.Fstat(int(was.Fd()), &before); err != nil {
		return err
	}
	if err := unix.Fstatat(int(parent.Fd()), path.Base(at.Path), &is, unix.AT_SYMLINK_NOFOLLOW); err != nil || is.Dev != before.Dev || is.Ino != before.Ino {
		return errors.New("it was removed meanwhile")
	}
	return nil
}

// kind names the host's file system that a file is on.
func kind(file *os.File) string {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &stat); err != nil {
		return "a file system that cannot be looked at"
	}
	switch stat.Type {
	case unix.EXT4_SUPER_MAGIC: // that of ext2 and ext3, too
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "XFS without reflink"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	}
	return fmt.Sprintf("another one (type %#x)", stat.Type)
}
