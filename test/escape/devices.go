// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func deviceAttacks() []attack {
	return []attack{
		{
			"block-device", "makes a node of the host's canary device, reads it and writes what it read",
			"the host's disks", blockDevice,
		},
		{
			"kernel-devices", "makes nodes of /dev/mem, port, kmsg, console, kvm, loop-control, … and opens them",
			"memory, log, terminals and inputs of the host", kernelDevices,
		},
		{
			"devices-there", "opens the disks and other devices of the host that are in its /dev",
			"the host's devices", devicesThere,
		},
	}
}

func loopAttacks() []attack {
	return []attack{
		{
			"loop-control", "opens /dev/loop-control, or a node of its own, and removes a device that is not there",
			"loop devices of the whole host, added and removed", loopControl,
		},
		{
			"loop-status", "asks the host's loop device which file is behind it (LOOP_GET_STATUS64)",
			"paths of the host and of other machines", loopStatus,
		},
		{
			"loop-files", "reads the paths of the files behind loop devices in /sys",
			"paths of the host and of other machines", loopFiles,
		},
	}
}

// openNode makes a node of a device and opens it: in memory of its own, or, without the right to mount, on a disk.
func (w *world) openNode(kind uint32, numbers, flags int) (int, error) {
	var last error
	for _, dir := range []func() (string, error){
		w.scratch,
		func() (string, error) { return w.Disk, nil },
		func() (string, error) { return w.Volume, nil },
	} {
		path, err := dir()
		if err != nil {
			last = fmt.Errorf("mounting memory for a node: %w", err)
			continue
		}
		if path == "" {
			continue
		}
		node := filepath.Join(path, fmt.Sprintf(".escape.%s.%x", w.mark, numbers))
		if err := unix.Mknod(node, kind|0o600, numbers); err != nil {
			last = fmt.Errorf("making a node: %w", err)
			continue
		}
		fd, err := unix.Open(node, flags|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		_ = unix.Unlink(node)
		if err == nil {
			return fd, nil
		}
		last = fmt.Errorf("opening a node: %w", err)
	}
	return -1, last
}

// findNode opens a node of a device that is there already.
func findNode(kind uint32, numbers, flags int) (int, bool) {
	entries, _ := os.ReadDir("/dev") // it may be empty
	for _, entry := range entries {
		path := filepath.Join("/dev", entry.Name())
		var stat unix.Stat_t
		if unix.Lstat(path, &stat) == nil && stat.Mode&unix.S_IFMT == kind && stat.Rdev == uint64(numbers) { //nolint:gosec // G115: device numbers
			if fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0); err == nil {
				return fd, true
			}
		}
	}
	return -1, false
}

// anyNode opens a node that is there, or one of its own.
func (w *world) anyNode(kind uint32, numbers, flags int) (int, error) {
	if fd, ok := findNode(kind, numbers, flags); ok {
		return fd, nil
	}
	return w.openNode(kind, numbers, flags)
}

// makeCanary makes the canary's node at a path, reads it and removes it.
func (w *world) makeCanary(path string, numbers int) finding {
	if err := unix.Mknod(path, unix.S_IFBLK|0o600, numbers); err != nil {
		return refused("making the node", err)
	}
	defer func() { _ = os.Remove(path) }() //nolint:gosec // G703: the paths are those of whoever runs it
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening the node", err)
	}
	if token := w.Find(readFD(fd)); token != "" {
		return outWith(token, "read the host's block device by a node at %s", filepath.Dir(path))
	}
	return notHere("the device has no token")
}

func blockDevice(w *world) finding {
	numbers, ok := device(w.CanaryDevice)
	if !ok {
		return notHere("-canary-device is not given")
	}
	fd, err := w.anyNode(unix.S_IFBLK, numbers, unix.O_RDWR)
	if err != nil {
		return refused("opening the host's block device", err)
	}
	block := readFD(fd)
	token := w.Find(block)
	if token == "" { // nothing that is not known to be the canary is written
		return notHere("the device has no token")
	}
	if _, err := unix.Pwrite(fd, block, 0); err != nil {
		return outWith(token, "read the host's block device %s", w.CanaryDevice)
	}
	return outWith(token, "read the host's block device %s, and wrote what it read", w.CanaryDevice)
}

// dangerous are character devices of the whole host that do nothing by being opened, as serial lines, tapes and
// watchdogs do.
func dangerous() map[string]int {
	all := map[string]int{}
	for name, numbers := range map[string][2]uint32{
		"mem": {1, 1}, "port": {1, 4}, "kmsg": {1, 11}, "tty1": {4, 1}, "console": {5, 1}, "kvm": {10, 232}, "uinput": {10, 223},
		"btrfs-control": {10, 234}, "autofs": {10, 235}, "device-mapper": {10, 236}, "vga_arbiter": {10, 63}, "loop-control": {10, 237}, "cuse": {10, 203},
	} {
		all[name] = int(unix.Mkdev(numbers[0], numbers[1])) //nolint:gosec // G115: mknod takes an int
	}
	return all
}

func kernelDevices(w *world) finding {
	var tried ways
	var opened []string
	for name, numbers := range dangerous() {
		fd, err := w.openNode(unix.S_IFCHR, numbers, unix.O_RDONLY)
		if err != nil {
			tried.add("opening a device", err)
			continue
		}
		_ = unix.Close(fd)
		opened = append(opened, name)
	}
	if len(opened) > 0 {
		slices.Sort(opened)
		return out("opened %s", strings.Join(opened, ", "))
	}
	return tried.finding()
}

// quiet reports whether a device is the host's and does nothing by being opened: disks, and the dangerous ones. Devices
// that every machine may have (memory devices, random numbers, its own terminals, FUSE) are not among them.
func quiet(stat unix.Stat_t) bool {
	if stat.Mode&unix.S_IFMT == unix.S_IFBLK {
		// Loop devices, SCSI, device mapper, virtio and NVMe disks (Documentation/admin-guide/devices.txt).
		return slices.Contains([]uint32{loopMajor, 8, 65, 66, 252, 253, 254, 259}, unix.Major(stat.Rdev))
	}
	for _, numbers := range dangerous() {
		if stat.Rdev == uint64(numbers) { //nolint:gosec // G115: device numbers
			return true
		}
	}
	return false
}

func devicesThere(*world) finding {
	var tried ways
	var opened []string
	_ = filepath.WalkDir("/dev", func(path string, entry os.DirEntry, err error) error {
		var stat unix.Stat_t
		if err != nil || entry.Type()&os.ModeDevice == 0 || unix.Lstat(path, &stat) != nil || !quiet(stat) {
			return nil //nolint:nilerr // it has gone
		}
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			tried.add("opening "+path, err)
			return nil
		}
		_ = unix.Close(fd)
		opened = append(opened, entry.Name())
		return nil
	})
	if n := len(opened); n > 0 {
		return out("opened %d devices of the host: %s", n, strings.Join(opened[:min(n, 8)], ", "))
	}
	if len(tried.refusals) == 0 {
		return held("no device of the host is in /dev")
	}
	return tried.finding()
}

const loopMajor = 7

func loopControl(w *world) finding {
	fd, err := w.anyNode(unix.S_IFCHR, int(unix.Mkdev(10, 237)), unix.O_RDWR) //nolint:gosec // G115: a small number
	if err != nil {
		return refused("opening loop-control", err)
	}
	const nobodys = 1<<20 - 1 // no host has so many
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.LOOP_CTL_REMOVE, nobodys)
	if errno != 0 && errno != unix.ENODEV {
		return refused("removing a device that is not there", errno)
	}
	return out("the driver looked for a loop device of the host to remove: %v", errno)
}

// loopStatusInfo is struct loop_info64 (linux/loop.h).
type loopStatusInfo struct {
	device, inode, rdevice, offset, size uint64
	number, encryption, keySize, flags   uint32
	fileName, cryptName                  [64]byte
	key                                  [32]byte
	initial                              [2]uint64
}

func loopStatus(w *world) finding {
	numbers, ok := device(w.CanaryDevice)
	if !ok || unix.Major(uint64(numbers)) != loopMajor { //nolint:gosec // G115: device numbers
		return notHere("-canary-device is not that of a loop device")
	}
	fd, err := w.anyNode(unix.S_IFBLK, numbers, unix.O_RDONLY)
	if err != nil {
		return refused("opening the host's loop device", err)
	}
	var info loopStatusInfo
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.LOOP_GET_STATUS64, uintptr(unsafe.Pointer(&info))); errno != 0 { //nolint:gosec // G103: that is how it is called
		return refused("asking which file is behind it", errno)
	}
	if token := w.Find(info.fileName[:]); token != "" {
		return outWith(token, "the file behind loop device %s of the host is named", w.CanaryDevice)
	}
	return notHere("the name of the file behind the device has no token")
}

func loopFiles(w *world) finding {
	if w.CanaryDevice == "" {
		return notHere("-canary-device is not given")
	}
	return w.through("sysfs", "/sys", "dev/block/"+w.CanaryDevice+"/loop/backing_file", unix.O_RDONLY, func(how string, fd int) (finding, error) {
		token := w.Find(readFD(fd))
		if token == "" {
			return finding{}, fmt.Errorf("the path has no token: %w", unix.ENODEV)
		}
		return outWith(token, "%s: read the path of the file behind loop device %s of the host", how, w.CanaryDevice), nil
	})
}
