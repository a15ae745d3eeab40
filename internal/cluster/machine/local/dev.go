// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// device is a device of every machine: a character device, if it does not say that it is a block device.
type device struct {
	name         string
	major, minor uint32
	mode         uint32
	block        bool
	// optional devices are left out where the host has none.
	optional bool
}

func devices() []device {
	return []device{
		{name: "null", major: 1, minor: 3, mode: 0o666},
		{name: "zero", major: 1, minor: 5, mode: 0o666},
		{name: "full", major: 1, minor: 7, mode: 0o666},
		{name: "random", major: 1, minor: 8, mode: 0o666},
		{name: "urandom", major: 1, minor: 9, mode: 0o666},
		{name: "tty", major: 5, minor: 0, mode: 0o666},
		{name: "fuse", major: 10, minor: 229, mode: 0o666, optional: true},
	}
}

// loopDevices is how many loop devices a machine has nodes of. They are the kernel's, and so the host's and all machines': a kubelet has one over each
// block device that a pod uses, and programs attach files to them.
const loopDevices = 128

// loops are the devices by which programs attach files, where the host has them. Their minor numbers are the kernel's.
func loops() []device {
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		return nil
	}
	all := []device{{name: "loop-control", major: 10, minor: 237, mode: 0o600, optional: true}}
	for n := range uint32(loopDevices) {
		all = append(all, device{name: fmt.Sprintf("loop%d", n), major: 7, minor: n, mode: 0o600, block: true, optional: true})
	}
	return all
}

// mountDev makes the machine's devices: the harmless ones, loop devices, terminals of its own, and shared memory of its own. Disks and
// the like of the host are not among them.
func mountDev(bootOrder) error {
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755"); err != nil {
		return err
	}
	for _, d := range devices() {
		if _, err := os.Stat(hostRoot + "/dev/" + d.name); d.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := makeDevice(d); err != nil {
			return err
		}
	}
	for _, d := range loops() {
		if err := makeDevice(d); err != nil {
			return err
		}
	}
	// A kubelet does not start without the kernel's log, in which it looks for processes killed for want of memory.
	kernelLog := device{name: "kmsg", major: 1, minor: 11, mode: 0o600}
	if _, err := os.Stat(hostRoot + "/dev/kmsg"); err != nil { // in a container: it finds an empty one
		kernelLog = device{name: "kmsg", major: 1, minor: 3, mode: 0o600}
	}
	if err := makeDevice(kernelLog); err != nil {
		return err
	}
	for _, mount := range []struct {
		kind, name, options string
		flags               uintptr
	}{
		{"devpts", "pts", "newinstance,ptmxmode=0666,mode=620,gid=5", unix.MS_NOSUID | unix.MS_NOEXEC},
		{"tmpfs", "shm", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"mqueue", "mqueue", "", kernelFlags},
	} {
		target := filepath.Join("/dev", mount.name)
		if err := os.Mkdir(target, 0o755); err != nil { //nolint:gosec // G301: as on every Linux system
			return err
		}
		if err := unix.Mount(mount.kind, target, mount.kind, mount.flags, mount.options); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	return errors.Join(
		link("pts/ptmx", "/dev/ptmx"),
		link("/proc/self/fd", "/dev/fd"),
		link("/proc/self/fd/0", "/dev/stdin"),
		link("/proc/self/fd/1", "/dev/stdout"),
		link("/proc/self/fd/2", "/dev/stderr"),
	)
}

// makeDevice makes a device, or shows the host's where making them is not allowed.
func makeDevice(d device) error {
	path := filepath.Join("/dev", d.name)
	kind := uint32(unix.S_IFCHR)
	if d.block {
		kind = unix.S_IFBLK
	}
	err := unix.Mknod(path, kind|d.mode, int(unix.Mkdev(d.major, d.minor))) //nolint:gosec // G115: a small number
	if err == nil {
		return os.Chmod(path, fs.FileMode(d.mode)) // whatever the umask is
	}
	if !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("making %s: %w", path, err)
	}
	if _, err := os.Stat(hostRoot + path); d.optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	if err := unix.Mount(hostRoot+path, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", path, err)
	}
	return nil
}
