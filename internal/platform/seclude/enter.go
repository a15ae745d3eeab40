// SPDX-License-Identifier: Apache-2.0

package seclude

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// stage is where the root directory is put together. This thread does not see the host's /tmp from then on.
const stage = "/tmp"

// held is a part of the host that has been taken hold of.
type held struct {
	shown
	tree   int // a mount of it that is nowhere yet
	dir    bool
	target string // of a symbolic link, which is copied
}

// enter makes the view the root directory of the calling thread, which has a mount namespace of its own.
func (v View) enter() error {
	defer unix.Umask(unix.Umask(0o022)) // of this thread alone
	v.Files = append(slices.Clone(v.Files), linked()...)
	all, err := hold(v.parts())
	defer func() {
		for _, one := range all {
			if one.target == "" {
				_ = unix.Close(one.tree)
			}
		}
	}()
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("making a root directory: %w", err)
	}
	if err := ownFiles(); err != nil {
		return err
	}
	for _, one := range all {
		if err := one.show(); err != nil {
			return fmt.Errorf("showing %s: %w", one.path, err)
		}
	}
	for path, target := range v.Links {
		at := filepath.Join(stage, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(target, at)); err != nil { //nolint:gosec // G301: every user is to find it
			return fmt.Errorf("making a link in the view: %w", err)
		}
	}
	if err := unix.Mount("", stage, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("making the root directory read-only: %w", err)
	}
	return pivot()
}

// linked are files that some hosts have by a link from /etc to a directory that is not shown.
func linked() (files []string) {
	for _, name := range []string{"/etc/hosts", "/etc/localtime", "/etc/nsswitch.conf", "/etc/resolv.conf"} {
		if path, err := filepath.EvalSymlinks(name); err == nil && path != name {
			files = append(files, path)
		}
	}
	return files
}

// hold takes hold of parts of the host, in the state in which they are shown.
func hold(parts []shown) (all []held, err error) {
	for _, part := range parts {
		info, err := os.Lstat(part.path)
		if part.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return all, fmt.Errorf("showing a part of the host: %w", err)
		}
		if part.optional && info.Mode()&fs.ModeSymlink != 0 { // /bin and its like since /usr has been merged
			target, err := os.Readlink(part.path)
			if err != nil {
				return all, err
			}
			all = append(all, held{shown: part, target: target})
			continue
		}
		// Mounts below a directory of the system are shown, too: control groups are below /sys.
		flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_SYMLINK_NOFOLLOW)
		if part.optional && info.IsDir() {
			flags |= unix.AT_RECURSIVE
		}
		tree, err := unix.OpenTree(unix.AT_FDCWD, part.path, flags)
		if err != nil {
			return all, fmt.Errorf("taking hold of %s: %w", part.path, err)
		}
		all = append(all, held{shown: part, tree: tree, dir: info.IsDir()})
		set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
		if !part.device {
			set.Attr_set |= unix.MOUNT_ATTR_NODEV
		}
		if part.writable {
			set.Attr_set |= unix.MOUNT_ATTR_NOEXEC
		} else if !part.device {
			set.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &set); err != nil {
			return all, fmt.Errorf("restricting %s, for which the kernel has to be 5.12 or newer: %w", part.path, err)
		}
	}
	return all, nil
}

// show puts a part where it belongs below the staged root.
func (h held) show() error {
	at := filepath.Join(stage, h.path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // G301: every user is to find what is in it
		return err
	}
	if h.target != "" {
		return os.Symlink(h.target, at)
	}
	err := os.Mkdir(at, 0o755) //nolint:gosec // G301: it is covered
	if !h.dir {
		_ = os.Remove(at)
		// Never opened: a child that another thread starts meanwhile would hold it open for writing for a moment, and the
		// root directory could not be made read-only.
		err = unix.Mknod(at, unix.S_IFREG|0o444, 0)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // a part of an outer one that is shown already
		return err
	}
	return unix.MoveMount(h.tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// ownFiles mounts /proc, in which the program sees its own processes alone, and a /tmp of its own. Parts of the host
// that are shown below /tmp are mounted over it.
func ownFiles() error {
	proc, own := filepath.Join(stage, "proc"), filepath.Join(stage, "tmp")
	for _, dir := range []string{proc, own} {
		if err := os.Mkdir(dir, 0o555); err != nil { //nolint:gosec // G301: it is covered
			return err
		}
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", proc, "proc", flags, "hidepid=2"); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", own, "tmpfs", flags, "mode=1777,size=64m"); err != nil {
		return fmt.Errorf("mounting /tmp: %w", err)
	}
	return nil
}

// pivot makes the staged directory the root directory, and lets the host's go.
func pivot() error {
	if err := unix.Chdir(stage); err != nil {
		return fmt.Errorf("entering the root directory: %w", err)
	}
	err := unix.PivotRoot(".", ".") // the old one is then on top of the new one (pivot_root(2))
	if err == nil {
		err = unix.Unmount(".", unix.MNT_DETACH)
	}
	if errors.Is(err, unix.EINVAL) { // the host runs from its initial file system
		err = errors.Join(unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."))
	}
	if err != nil {
		return fmt.Errorf("changing the root directory: %w", err)
	}
	return unix.Chdir("/")
}
