// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

func socketAttacks() []attack {
	return []attack{
		{
			"abstract-socket", "calls the host's abstract unix socket",
			"services of the host", abstractSocket,
		},
		{
			"shared-memory", "attaches the host's System V shared memory segment by its key",
			"memory of the host's processes", func(w *world) finding { return w.attachMemory("its own IPC namespace") },
		},
		{
			"vsock", "binds the vsock port that the host has bound",
			"services for and of the host's virtual machine", vsock,
		},
		{
			"uevents", "listens for the kernel's events about devices",
			"what happens to the host's devices, with its values", uevents,
		},
		{
			"audit", "writes a line into the host's audit log",
			"a log that nobody can believe", audit,
		},
	}
}

// askSocket calls a unix socket; a name that begins with @ is abstract.
func (w *world) askSocket(name, where string) finding {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused("making a socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return refused("calling the host's socket", planted(err))
	}
	if token := w.Find(readFD(fd)); token != "" {
		return outWith(token, "a socket of the host answered in %s", where)
	}
	return notHere("the socket did not answer with a token")
}

func abstractSocket(w *world) finding {
	if w.HostSocket == "" {
		return notHere("-host-socket is not given")
	}
	return w.askSocket("@"+w.HostSocket, "its own network namespace")
}

// attachMemory reads the host's segment in the IPC namespace that the attack is in.
func (w *world) attachMemory(where string) finding {
	if w.HostMemory == 0 {
		return notHere("-host-memory is not given")
	}
	id, err := unix.SysvShmGet(w.HostMemory, 0, 0)
	if err != nil {
		return refused("finding the host's segment in "+where, err)
	}
	data, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return refused("attaching the host's segment", err)
	}
	token := w.Find(data)
	_ = unix.SysvShmDetach(data)
	if token == "" {
		return notHere("the segment has no token")
	}
	return outWith(token, "read a shared memory segment of the host in %s", where)
}

// vsock calls nobody: beyond the host, whoever listens is nobody's to try things on.
func vsock(w *world) finding {
	if w.HostVsock == 0 {
		return notHere("-host-vsock is not given")
	}
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused("making a vsock socket", err)
	}
	err = unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: uint32(w.HostVsock)}) //nolint:gosec // G115: a port
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return out("vsock port %d is in use, by the host: the machine has the host's ports", w.HostVsock)
	case err != nil:
		return refused("binding the host's vsock port", err)
	}
	return held("vsock port %d is not the host's", w.HostVsock)
}

func uevents(w *world) finding {
	if !w.HostUevents {
		return notHere("-host-uevents is not given")
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return refused("making a socket for uevents", err)
	}
	const ofKernel = 1
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: ofKernel}); err != nil {
		return refused("listening for uevents", err)
	}
	token := ""
	waitFor(fd, func(data []byte) bool {
		token = w.Find(data)
		return token != ""
	})
	if token == "" {
		return held("no uevent of the host came within %v", eventPatience)
	}
	return outWith(token, "received a uevent of the host")
}

// audit sends a record that a kernel without auditd drops.
func audit(*world) finding {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return refused("making an audit socket", err)
	}
	const (
		user       = 1107 // AUDIT_TRUSTED_APP
		headerSize = 16
	)
	text := []byte("muster-escape: a test\x00\x00\x00")
	message := append(words(uint32(headerSize+len(text)), uint16(user), uint16(unix.NLM_F_REQUEST|unix.NLM_F_ACK), uint32(1), uint32(0)), text...) //nolint:gosec // G115: a short text
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return refused("sending a record", err)
	}
	answer := readFD(fd)
	if len(answer) < headerSize+4 {
		return held("the kernel did not answer")
	}
	if errno := -int32(le32(answer[headerSize:])); errno != 0 { //nolint:gosec // G115: an errno
		return refused("writing a record", unix.Errno(errno)) //nolint:gosec // G115: an errno
	}
	return out("the kernel took a record for the host's audit log")
}
