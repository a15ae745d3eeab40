// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func sharedAttacks() []attack {
	return []attack{
		{
			"shared-remounted", "remounts the shared directory writable (mount MS_REMOUNT) and makes a file in it",
			"programs that the host's root runs", sharedRemounted,
		},
		{
			"shared-flags-cleared", "clears the flags of the shared mount (mount_setattr) and makes a file in it",
			"programs that the host's root runs", sharedFlagsCleared,
		},
		{
			"shared-cloned", "clones the shared mount (open_tree), clears the clone's flags and makes a file in it",
			"programs that the host's root runs", sharedCloned,
		},
		{
			"shared-bound-again", "binds the shared directory at a second place, remounts that writable and makes a file in it",
			"programs that the host's root runs", sharedBoundAgain,
		},
		{
			"shared-with-devices", "remounts the shared directory with devices and setuid programs",
			"programs and devices of the host with their rights", sharedWithDevices,
		},
		{
			"shared-taken-away", "unmounts the shared directory",
			"what lies below it", sharedTakenAway,
		},
		{
			"shared-secret", "reads a file of the shared directory that is for the host's root alone",
			"secrets that lie in shared directories", sharedSecret,
		},
		{
			"shared-lock", "locks the file on which the host's processes lock the shared directory",
			"the host waits for the machine", sharedLock,
		},
		{
			"shared-lease", "takes a lease on a file of the shared directory",
			"the host waits for the machine whenever it writes the file", sharedLease,
		},
		{
			"shared-socket", "calls the host's socket in the shared directory",
			"services of the host", sharedSocket,
		},
	}
}

// makeIn makes a file in a directory that may be the host's and removes it.
func (w *world) makeIn(dir int, how string) (finding, error) {
	name := ".escape." + w.mark
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return finding{}, err
	}
	_ = unix.Close(fd)
	if err := unix.Unlinkat(dir, name, 0); err != nil {
		return out("%s: made %s and could not remove it: %v", how, filepath.Join(w.Shared, name), err), nil
	}
	return out("%s: made and removed %s", how, filepath.Join(w.Shared, name)), nil
}

// makeInPath is makeIn for a path. The refusal comes after a step that was not refused.
func (w *world) makeInPath(path, how string) finding {
	dir, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening "+path, err)
	}
	f, err := w.makeIn(dir, how)
	if err != nil {
		return refused("making a file, after: "+how, err)
	}
	return f
}

func sharedRemounted(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	if err := w.mount("", w.Shared, "", unix.MS_BIND|unix.MS_REMOUNT, ""); err != nil {
		var keep unix.Statfs_t
		_ = unix.Statfs(w.Shared, &keep)                                                 // zero asks for no flag
		flags := uintptr(keep.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC) //nolint:gosec // G115: a small number
		if again := w.mount("", w.Shared, "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""); again != nil {
			return refused("remounting it writable", err)
		}
	}
	return w.makeInPath(w.Shared, "remounted")
}

func clearedFlags(dir int, path string, flags int) error {
	return unix.MountSetattr(dir, path, uint(flags), &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
}

func sharedFlagsCleared(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	if w.private != nil {
		return refused("taking a mount namespace", w.private)
	}
	if err := clearedFlags(unix.AT_FDCWD, w.Shared, 0); err != nil {
		return refused("clearing its flags", err)
	}
	return w.makeInPath(w.Shared, "flags cleared")
}

func sharedCloned(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	clone, err := unix.OpenTree(unix.AT_FDCWD, w.Shared, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return refused("cloning it", err)
	}
	if err := clearedFlags(clone, "", unix.AT_EMPTY_PATH); err != nil {
		return refused("clearing the clone's flags", err)
	}
	dir, err := unix.Openat(clone, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening the clone", err)
	}
	f, err := w.makeIn(dir, "clone with its flags cleared")
	if err != nil {
		return refused("making a file in the clone", err)
	}
	return f
}

func sharedBoundAgain(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	place, err := w.spare()
	if err != nil {
		return refused("finding a place", err)
	}
	if err := w.mount(w.Shared, place, "", unix.MS_BIND, ""); err != nil {
		return refused("binding it again", err)
	}
	if err := w.mount("", place, "", unix.MS_BIND|unix.MS_REMOUNT, ""); err != nil {
		return refused("remounting the second place writable", err)
	}
	return w.makeInPath(place, "bound again and remounted")
}

func sharedWithDevices(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	const bad = unix.ST_NODEV | unix.ST_NOSUID
	var before, after unix.Statfs_t
	if err := unix.Statfs(w.Shared, &before); err != nil {
		return refused("looking at its flags", err)
	}
	if before.Flags&bad == 0 {
		return notHere("the shared directory is mounted with devices and setuid programs")
	}
	if err := w.mount("", w.Shared, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return refused("remounting it with devices", err)
	}
	if err := unix.Statfs(w.Shared, &after); err != nil {
		return refused("looking at its flags", err)
	}
	if after.Flags&bad == before.Flags&bad {
		return held("the kernel kept its flags")
	}
	return out("the mount's flags went from %#x to %#x", before.Flags&bad, after.Flags&bad)
}

func sharedTakenAway(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	if w.private != nil {
		return refused("taking a mount namespace", w.private)
	}
	var before, after unix.Stat_t
	if err := unix.Stat(w.Shared, &before); err != nil {
		return refused("looking at it", err)
	}
	if err := unix.Unmount(w.Shared, unix.MNT_DETACH); err != nil {
		return refused("unmounting it", err)
	}
	if err := unix.Stat(w.Shared, &after); err == nil && after.Dev == before.Dev && after.Ino == before.Ino {
		return held("the same directory is below")
	}
	return out("unmounted it, in a mount namespace of its own")
}

// planted turns a missing prize into an error that says so: the directory may be one that has none, such as /usr.
func planted(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("nothing is planted there: %w", unix.ENODEV)
	}
	return err
}

func sharedSecret(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	raw, err := os.ReadFile(filepath.Join(w.Shared, "token")) //nolint:gosec // G703: the paths are those of whoever runs it
	if err != nil {
		return refused("reading it", planted(err))
	}
	if token := w.Find(raw); token != "" {
		return outWith(token, "read %s/token", w.Shared)
	}
	return notHere("%s/token has no token", w.Shared)
}

func sharedLock(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	fd, err := unix.Open(filepath.Join(w.Shared, "lock"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening the lock's file", planted(err))
	}
	// The host holds the lock already. That this is seen shows that it is the same lock, so the host would wait for the
	// machine as well.
	err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return out("the lock of %s/lock is the one that the host holds", w.Shared)
	}
	if err != nil {
		return refused("locking it", err)
	}
	return held("the lock is another one than the host's")
}

func sharedLease(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	var tried ways
	for _, name := range []string{"setuid", "token"} {
		fd, err := unix.Open(filepath.Join(w.Shared, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			tried.add("opening a file", planted(err))
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
			tried.add("taking a lease", err)
			continue
		}
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return out("had a lease on %s/%s", w.Shared, name)
	}
	return tried.finding()
}

func sharedSocket(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	return w.askSocket(filepath.Join(w.Shared, "socket"), "the shared directory")
}
