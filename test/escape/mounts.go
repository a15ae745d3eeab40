// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func mountAttacks() []attack {
	all := []attack{
		{
			"disk-mounted", "makes a node of the host's disk and mounts it",
			"every file of the host", diskMounted,
		},
		{
			"device-directory-mounted", "mounts devtmpfs, which has the nodes of all devices, and reads the canary",
			"the host's disks", deviceDirectoryMounted,
		},
	}
	for _, kind := range []struct{ name, prize string }{
		{"debugfs", "what drivers of the host show and take for tests"},
		{"tracefs", "what every process of the host does"},
		{"securityfs", "the security modules' switches"},
		{"configfs", "devices and targets of the kernel"},
		{"pstore", "what the kernel said before it crashed"},
		{"efivarfs", "the firmware's variables"},
		{"resctrl", "the processors' caches"},
	} {
		all = append(all, attack{
			kind.name + "-mounted", "mounts " + kind.name + ", which is the whole kernel's", kind.prize,
			func(*world) finding { return kernelMounted(kind.name) },
		})
	}
	return all
}

// diskMounted mounts the disk as it is mounted already: the kernel then shows the same file system once more, and no
// journal is looked at.
func diskMounted(w *world) finding {
	numbers, ok := device(w.HostDevice)
	if !ok {
		return notHere("-host-device is not given")
	}
	dir, err := w.scratch()
	if err != nil {
		return refused("mounting memory for a node", err)
	}
	node, place := filepath.Join(dir, "disk"), filepath.Join(dir, "place")
	if err := unix.Mknod(node, unix.S_IFBLK|0o600, numbers); err != nil {
		return refused("making a node of the disk", err)
	}
	if err := os.Mkdir(place, 0o700); err != nil { //nolint:gosec // G703: the paths are those of whoever runs it
		return refused("making a directory", err)
	}
	var tried ways
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		if err := w.mount(node, place, kind, 0, ""); err != nil {
			tried.add("mounting it as "+kind, err)
			continue
		}
		defer func() { _ = unix.Unmount(place, unix.MNT_DETACH) }()
		root, err := unix.Open(place, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return refused("opening it", err)
		}
		defer func() { _ = unix.Close(root) }()
		if f, ok := w.fromRoot(root, "the host's disk, mounted as "+kind); ok {
			return f
		}
		return out("mounted the host's disk as %s, though the host's file was not found on it", kind)
	}
	return tried.finding()
}

func deviceDirectoryMounted(w *world) finding {
	if w.CanaryDevice == "" {
		return notHere("-canary-device is not given")
	}
	root, err := detached("devtmpfs")
	if err != nil {
		return refused("mounting devtmpfs", err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(w.CanaryDevice, "%d:%d", &major, &minor); err != nil {
		return notHere("invalid -canary-device %q", w.CanaryDevice)
	}
	fd, err := unix.Openat(root, fmt.Sprintf("loop%d", minor), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening the canary in devtmpfs", err)
	}
	if token := w.Find(readFD(fd)); token != "" {
		return outWith(token, "read the host's block device in devtmpfs")
	}
	return notHere("the device in devtmpfs has no token")
}

// kernelMounted mounts a file system that there is one of, and looks into it.
func kernelMounted(kind string) finding {
	root, err := detached(kind)
	if err != nil {
		return refused("mounting it", err)
	}
	dir, err := unix.Openat(root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening it", err)
	}
	file := os.NewFile(uintptr(dir), kind)
	defer func() { _ = file.Close() }()
	names, err := file.Readdirnames(-1)
	if err != nil {
		return refused("listing it", err)
	}
	return out("mounted %s, with %d entries of the kernel's", kind, len(names))
}
