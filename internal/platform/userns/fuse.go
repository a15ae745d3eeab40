// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Of returns the ids of the user namespace that a process is in; it is the zero value if these are the host's own.
func Of(pid int) (IDs, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "uid_map"))
	if err != nil {
		return IDs{}, err
	}
	var inside uint32
	var ids IDs
	if _, err := fmt.Sscan(string(raw), &inside, &ids.First, &ids.Count); err != nil {
		return IDs{}, fmt.Errorf("reading the ids of process %d: %w", pid, err)
	}
	if ids.First == 0 {
		return IDs{}, nil
	}
	return ids, nil
}

// EndFUSE has the FUSE file systems that one of the ids has mounted answer errors from now on, and returns how many it
// were. A process that waits for
// such a file system cannot be killed, and does not end if what it waits for is a program that ends only after it, such
// as itself. It needs root, and does nothing for the host's own ids.
func (i IDs) EndFUSE() (ended int, err error) {
	if !i.Own() {
		return 0, nil
	}
	connections, err := fuseConnections()
	if errors.Is(err, unix.ENODEV) { // a kernel without FUSE
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for FUSE connections: %w", err)
	}
	defer func() { _ = connections.Close() }()
	names, err := connections.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("looking for FUSE connections: %w", err)
	}
	var errs []error
	for _, name := range names {
		var is unix.Stat_t // the connection belongs to who has mounted it
		if err := unix.Fstatat(int(connections.Fd()), name, &is, unix.AT_SYMLINK_NOFOLLOW); err != nil || !i.Has(is.Uid) {
			continue
		}
		switch err := abort(int(connections.Fd()), name); {
		case err == nil:
			ended++
		case !errors.Is(err, unix.ENOENT): // else it has ended by itself
			errs = append(errs, fmt.Errorf("ending FUSE connection %s: %w", name, err))
		}
	}
	return ended, errors.Join(errs...)
}

// fuseConnections opens the directory of all FUSE connections (fuse.rst of the kernel), in a mount that nobody sees.
func fuseConnections() (*os.File, error) {
	fs, err := unix.Fsopen("fusectl", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, err
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(mount) }()
	fd, err := unix.Openat(mount, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "fusectl"), nil
}

func abort(connections int, name string) error {
	fd, err := unix.Openat(connections, name+"/abort", unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("1"))
	return errors.Join(err, unix.Close(fd))
}
