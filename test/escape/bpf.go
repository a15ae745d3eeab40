// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func bpfAttacks() []attack {
	return []attack{
		{
			"bpf-program", "loads a BPF program that traces the kernel",
			"memory of the kernel and of every process of the host", bpfProgram,
		},
		{
			"bpf-maps", "goes through the kernel's BPF maps and reads the host's",
			"data of the host's BPF programs", bpfMaps,
		},
	}
}

// bpf calls the kernel with a part of union bpf_attr.
func bpf(command int, attr unsafe.Pointer, size uintptr) (int, error) {
	r, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(attr), size)
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// bpfLoad is the part of union bpf_attr that loads a program (linux/bpf.h).
type bpfLoad struct {
	kind, count           uint32
	instructions, license uint64
	logLevel, logSize     uint32
	log                   uint64
	version, flags        uint32
}

func bpfProgram(*world) finding {
	instructions := [2]uint64{0x00000000_000000b7, 0x00000000_00000095} // r0 = 0; exit
	license := [4]byte{'G', 'P', 'L', 0}
	attr := bpfLoad{
		kind: unix.BPF_PROG_TYPE_RAW_TRACEPOINT, count: uint32(len(instructions)),
		instructions: uint64(uintptr(unsafe.Pointer(&instructions))), license: uint64(uintptr(unsafe.Pointer(&license))), //nolint:gosec // G103: that is how it is called
	}
	fd, err := bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&attr), unsafe.Sizeof(attr)) //nolint:gosec // G103: that is how it is called
	runtime.KeepAlive(&instructions)
	runtime.KeepAlive(&license)
	if err != nil {
		return refused("loading a program for a tracepoint", err)
	}
	_ = unix.Close(fd)
	return out("loaded a program that the kernel would run for every process of the host")
}

// bpfID is the part that goes from one id to the next and opens one.
type bpfID struct{ id, next, flags, spare uint32 }

// bpfElement is the part about an element of a map.
type bpfElement struct {
	fd, _             uint32
	key, value, flags uint64
}

func bpfMaps(w *world) finding {
	if !w.HostBPF {
		return notHere("-host-bpf is not given")
	}
	var tried ways
	at := bpfID{}
	for {
		if _, err := bpf(unix.BPF_MAP_GET_NEXT_ID, unsafe.Pointer(&at), unsafe.Sizeof(at)); err != nil { //nolint:gosec // G103: that is how it is called
			tried.add("asking for the next map", err)
			return tried.finding()
		}
		at.id = at.next
		open := bpfID{id: at.id}
		fd, err := bpf(unix.BPF_MAP_GET_FD_BY_ID, unsafe.Pointer(&open), unsafe.Sizeof(open)) //nolint:gosec // G103: that is how it is called
		if err != nil {
			tried.add("opening a map", err)
			continue
		}
		var key [256]byte // as large as keys are, and zero
		var value [64 << 10]byte
		element := bpfElement{fd: uint32(fd), key: uint64(uintptr(unsafe.Pointer(&key))), value: uint64(uintptr(unsafe.Pointer(&value)))} //nolint:gosec // G115: a descriptor
		_, err = bpf(unix.BPF_MAP_LOOKUP_ELEM, unsafe.Pointer(&element), unsafe.Sizeof(element))                                          //nolint:gosec // G103: that is how it is called
		runtime.KeepAlive(&key)
		_ = unix.Close(fd)
		if err != nil {
			tried.add("reading a map", err)
			continue
		}
		if token := w.Find(value[:128]); token != "" {
			return outWith(token, "read BPF map %d of the host", at.id)
		}
	}
}
