// SPDX-License-Identifier: Apache-2.0

// Package removetree removes directories that strangers have filled, such as the disks of machines and the volumes of
// pods.
//
// A pod can nest directories as deeply as a file system has inodes. os.RemoveAll has a file open for each level and is
// called once more for each: it takes all file descriptors of the process, or its stack, before it fails. Here a
// directory that lies too deep is moved up to the top and is emptied from there.
//
// It trusts that nobody writes to the tree any more, and follows no symbolic link in it.
package removetree

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth is how many directories are open at a time.
	maxDepth = 64
	// batch is how many names are read at a time.
	batch = 1024
)

// RemoveAll removes the file or directory at a path, with everything in it. It is not an error if the path does not
// exist.
func RemoveAll(path string) error {
	err := os.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	top, openErr := openDirectory(unix.AT_FDCWD, path)
	if errors.Is(openErr, fs.ErrNotExist) { // a file system that is read-only refuses to remove what is not there
		return nil
	}
	if openErr != nil {
		return err
	}
	defer func() { _ = top.Close() }()
	_ = allow(top)
	if _, err := subvolume(top); err != nil {
		return &fs.PathError{Op: "opening", Path: path, Err: err}
	}
	if err := (remover{top, top}).empty(top, 0); err != nil {
		return &fs.PathError{Op: "removing everything in", Path: path, Err: err}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func openDirectory(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// remover empties one tree.
type remover struct {
	top *os.File
	// root is what directories that lie too deep are moved to: the top, or the subvolume in it that they are in, which
	// only subvolumes leave.
	root *os.File
}

// empty removes everything in a directory. The names are read again after each batch: what is removed moves the others,
// and what lay too deep comes to the top.
func (r remover) empty(dir *os.File, depth int) error {
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(batch)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(names) == 0 {
			return nil
		}
		var failure error
		gone := 0
		for _, name := range names {
			if err := r.remove(dir, name, depth); err == nil {
				gone++
			} else if failure == nil {
				failure = err
			}
		}
		if gone == 0 {
			return failure
		}
	}
}

// remove removes one name, or moves it to the top.
func (r remover) remove(dir *os.File, name string, depth int) error {
	at := int(dir.Fd())
	err := unix.Unlinkat(at, name, 0)
	if errors.Is(err, unix.EPERM) {
		_, _ = allow(dir), allowName(at, name)
		err = unix.Unlinkat(at, name, 0)
	}
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	removed := unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
	switch {
	case removed == nil || errors.Is(removed, unix.ENOENT):
		return nil
	case errors.Is(removed, unix.ENOTDIR):
		return &fs.PathError{Op: "removing", Path: name, Err: err}
	case !errors.Is(removed, unix.ENOTEMPTY) && !errors.Is(removed, unix.EEXIST):
		return &fs.PathError{Op: "removing", Path: name, Err: removed}
	}
	child, err := openDirectory(at, name)
	if err != nil {
		return &fs.PathError{Op: "opening", Path: name, Err: err}
	}
	defer func() { _ = child.Close() }()
	below, inTop := r, dir == r.top
	volume, err := subvolume(child)
	if err != nil {
		return &fs.PathError{Op: "opening", Path: name, Err: err}
	}
	if volume && inTop {
		below.root = child
	}
	if to := r.root; depth == maxDepth || volume && !inTop {
		if volume {
			to = r.top
		}
		if err := unix.Renameat2(at, name, int(to.Fd()), rand.Text(), unix.RENAME_NOREPLACE); err != nil {
			return &fs.PathError{Op: "moving up", Path: name, Err: err}
		}
		return nil
	}
	if err := below.empty(child, depth+1); err != nil {
		return err
	}
	if err := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "removing", Path: name, Err: err}
	}
	return nil
}

// Of linux/fs.h: what root may do to a file so that nobody removes it (chattr(1)).
const immutable, appendOnly = 0x10, 0x20

// allow lets an open file or directory be changed and removed.
func allow(file *os.File) error {
	flags, err := unix.IoctlGetInt(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil || flags&(immutable|appendOnly) == 0 {
		return err
	}
	return unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags&^(immutable|appendOnly))
}

// allowName does the same by a name. Only files and directories are opened, never devices and the like.
func allowName(at int, name string) error {
	found, err := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(found) }()
	var stat unix.Stat_t
	if err := unix.Fstat(found, &stat); err != nil {
		return err
	}
	if kind := stat.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return nil
	}
	file, err := os.Open("/proc/self/fd/" + strconv.Itoa(found))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return allow(file)
}

// Of btrfs(5), linux/btrfs.h.
const (
	firstObject   = 256
	getFlags      = 0x80089419
	setFlags      = 0x4008941a
	flagsReadOnly = 1 << 1
)

// subvolume reports whether a directory is a subvolume of btrfs, which anybody can make and protect from being written.
// Then it can be written again.
func subvolume(dir *os.File) (bool, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil || stat.Ino != firstObject {
		return false, err
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &system); err != nil || system.Type != unix.BTRFS_SUPER_MAGIC {
		return false, err
	}
	flags, err := unix.IoctlGetInt(int(dir.Fd()), getFlags)
	if err == nil && flags&flagsReadOnly != 0 {
		_, err = unix.IoctlGetInt(int(dir.Fd()), setFlags) // to what it points to: 64 bits that are 0, as there is no other flag
	}
	return true, err
}
