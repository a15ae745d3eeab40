// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// show mounts a directory or a node at a path of a machine's, unless that is what is there.
func (p *Provider) show(id string, source *os.File, target string, attributes unix.MountAttr) error {
	var want unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &want); err != nil {
		return fmt.Errorf("looking at %s: %w", source.Name(), err)
	}
	fd, err := unix.OpenTree(int(source.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("taking hold of %s: %w", source.Name(), err)
	}
	tree := os.NewFile(uintptr(fd), source.Name())
	defer func() { _ = tree.Close() }()
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attributes); err != nil {
		return fmt.Errorf("preparing the mount of %s: %w", source.Name(), err)
	}
	err = p.inside(id, func(v *visit) error {
		if err := makeTarget(target, isBlock(want)); err != nil {
			return err
		}
		is, err := uncover(target)
		if err != nil {
			return err
		}
		if is.Dev == want.Dev && is.Ino == want.Ino { // it is mounted
			return nil
		}
		at, err := unix.Open(target, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: target, Err: err}
		}
		defer func() { _ = unix.Close(at) }()
		if err := v.commit(); err != nil {
			return err
		}
		return moveTo(at, tree)
	})
	if err != nil {
		return fmt.Errorf("mounting %s on machine %s: %w", target, id, err)
	}
	return nil
}

// moveTo mounts a tree at what is open. A tree that was closed is not mounted, and one that is being mounted is not
// closed.
func moveTo(at int, tree *os.File) error {
	raw, err := tree.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) {
		if err = unix.MoveMount(int(fd), "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
			err = os.NewSyscallError("move_mount", err)
		}
	})
	return errors.Join(controlErr, err)
}

// uncover takes away what is mounted at a path and has been withdrawn since: nothing can be mounted over it. It returns
// what is there.
func uncover(target string) (is unix.Stat_t, err error) {
	for {
		if err := unix.Lstat(target, &is); err != nil {
			return is, err
		}
		if is.Nlink > 0 || !isBlock(is) {
			return is, nil
		}
		if err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil {
			return is, os.NewSyscallError("umount", err)
		}
	}
}

// makeTarget makes what a directory or a device is mounted at. It opens nothing: package os asks a file of the machine's
// whether it is ready, and holds up the whole service while a program of the machine's (FUSE) does not answer.
func makeTarget(target string, isDevice bool) error {
	if !isDevice {
		return os.MkdirAll(target, 0o750)
	}
	if err := os.MkdirAll(path.Dir(target), 0o750); err != nil {
		return err
	}
	if err := unix.Mknod(target, unix.S_IFREG|0o600, 0); err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mknod", Path: target, Err: err}
	}
	return nil
}

// hide takes away what show has mounted.
func (p *Provider) hide(id, target string, flags int) error {
	err := p.inside(id, func(*visit) error {
		for {
			err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW|flags)
			switch {
			case errors.Is(err, unix.ENOENT):
				return nil
			case errors.Is(err, unix.EINVAL): // nothing is mounted there any more; only a directory without anything in it, or a file, is removed
				if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				return nil
			case err != nil:
				return err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("unmounting %s on machine %s: %w", target, id, err)
	}
	return nil
}
