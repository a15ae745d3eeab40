// SPDX-License-Identifier: Apache-2.0

// Package atomicfile writes files that are either there whole or not at all, whatever crashes in between.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Write replaces the file at path with content in one step and makes sure that it is on the disk. A file that has that
// content and mode already is left alone. The directory must exist.
//
// A file that root has given to another user or group stays theirs, and the group may go on reading it.
func Write(path string, content []byte, mode fs.FileMode) error {
	return write(path, content, mode, true)
}

// Replace is Write for what can be made again after a crash of the whole host: readers see the old content or the new,
// but the disk may not have it yet. Waiting for the disk is what many small files cost most, and etcd waits in the same
// queue.
func Replace(path string, content []byte, mode fs.FileMode) error {
	return write(path, content, mode, false)
}

func write(path string, content []byte, mode fs.FileMode, sync bool) error {
	info, err := os.Lstat(path)
	var owner *syscall.Stat_t
	if err == nil {
		if owner = given(info); owner != nil {
			mode |= info.Mode() & 0o040
		}
		if old, err := os.ReadFile(path); err == nil && info.Mode() == mode && bytes.Equal(old, content) {
			return nil
		}
	}
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, ".new-"+filepath.Base(path)+"-")
	if err != nil {
		return failed(path, err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // nothing is there after the rename
	if owner != nil {
		if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			_ = file.Close() // nothing was written
			return failed(path, err)
		}
	}
	if err := fill(file, content, mode, sync); err != nil {
		return failed(path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return failed(path, err)
	}
	if !sync {
		return nil
	}
	return syncDir(dir)
}

// failed is the error of a write, which names the file alone: another name each time would be another error each time
// to all who tell a repeated one once.
func failed(path string, err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	} else if of, ok := errors.AsType[*os.LinkError](err); ok {
		err = of.Err
	}
	return fmt.Errorf("writing %s: %w", path, err)
}

// Move gives a file or directory another name in the directory that it is in, and returns when that is on disk. Nothing
// may have that name but a file.
func Move(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("moving %s: %w", from, err)
	}
	return syncDir(filepath.Dir(to))
}

// given is the owner of a file that root has given away.
func given(info fs.FileInfo) *syscall.Stat_t {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || !info.Mode().IsRegular() || stat.Uid == 0 && stat.Gid == 0 {
		return nil
	}
	return stat
}

func fill(file *os.File, content []byte, mode fs.FileMode, sync bool) error {
	_, err := file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil && sync {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// syncDir makes a rename durable: the new name is an entry of the directory.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	defer func() { _ = dir.Close() }()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	return nil
}
