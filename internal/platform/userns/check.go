// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// tried are ids that Check tries with. Nothing runs by them, and nothing is written.
var tried = IDs{First: 2_000_000_000, Count: 1 << 16}

// Check tries whether this host can make a user namespace, and show the files of a directory by the ids of one. It
// needs root. The error says which of the two the host cannot do, and what to change.
func Check(dir string) error {
	namespace, err := tried.Open()
	if err != nil {
		return lacking(err)
	}
	defer func() { _ = namespace.Close() }()
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace.Fd())})
		_ = unix.Close(tree)
	}
	switch {
	case errors.Is(err, unix.ENOSYS):
		return errors.New("this kernel cannot show a file system by other ids: Linux 5.12 is the first that can")
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("the file system of %s cannot be shown by other ids (overlay, NFS and some FUSE file systems cannot): use a directory on ext4, XFS, Btrfs or tmpfs", dir)
	case err != nil:
		return fmt.Errorf("showing %s by other ids: %w", dir, err)
	}
	return nil
}

// lacking says why there is no user namespace to be had.
func lacking(err error) error {
	if _, statErr := os.Stat("/proc/self/ns/user"); statErr != nil {
		return errors.New("this kernel has no user namespaces: use one that is built with CONFIG_USER_NS")
	}
	const limit = "/proc/sys/user/max_user_namespaces"
	if raw, readErr := os.ReadFile(limit); readErr == nil && (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS)) {
		return fmt.Errorf("this host allows %s user namespaces to each user, and all of root's are in use: sysctl -w user.max_user_namespaces=65536", strings.TrimSpace(string(raw)))
	}
	return err
}
