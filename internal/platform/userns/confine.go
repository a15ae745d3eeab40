// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in the kernel's struct seccomp_data (seccomp(2)).
const (
	seccompNumber   = 0
	seccompArch     = 4
	seccompArgument = 16 // the lower half of the first one; both architectures are little-endian
	seccompSecond   = seccompArgument + 8
	seccompFourth   = seccompArgument + 3*8
)

// seccompABI is one way in which programs of an architecture call the kernel.
type seccompABI struct {
	arch   uint32
	socket uint32
	ioctl  uint32
	// mounting are mount(2) and fsopen(2), if those who listen hear of them.
	mounting [2]uint32
	// refused are calls whose arguments a filter cannot see.
	refused []uint32
}

// seccompABIs are those of the architecture that this program is for. Calls by others are refused: there are none.
func seccompABIs() []seccompABI {
	if runtime.GOARCH == "arm64" {
		return []seccompABI{{arch: unix.AUDIT_ARCH_AARCH64, socket: 198, ioctl: 29, mounting: [2]uint32{40, 430}}, {arch: unix.AUDIT_ARCH_ARM, socket: 281, ioctl: 54}}
	}
	return []seccompABI{
		{arch: unix.AUDIT_ARCH_X86_64, socket: 41, ioctl: 16, mounting: [2]uint32{165, 430}},
		{arch: unix.AUDIT_ARCH_I386, socket: 359, ioctl: 54, refused: []uint32{102}}, // socketcall(2)
	}
}

// First and last call of io_uring(7), the same in all ABIs, and what the calls of the x32 ABI begin with, which nobody
// uses.
const (
	ioURingFirst, ioURingLast = 425, 427
	x32                       = 0x40000000
)

// Numbers of the ioctl(2) requests of the loop driver, with room for those of later kernels
// (include/uapi/linux/loop.h). A program that may read the node of a device can take the file away from the device; the
// kernel then gives the device's number, and so the node, to the next program of the host.
const loopFirst, loopLast = 0x4c00, 0x4cff

// loopHarmless only say what a device is.
var loopHarmless = []uint32{unix.LOOP_GET_STATUS, unix.LOOP_GET_STATUS64}

// Confine keeps the calling thread, and what it becomes or starts, from what no namespace separates: the keys of the
// host in the session keyring that it was started with, sockets to the host by vsock(7), the driver of loop devices,
// and io_uring(7), into which seccomp filters do not see. Everything else is the namespaces' to decide, and
// containerd's.
func Confine() error {
	if err := leaveKeys(); err != nil {
		return err
	}
	_, err := install(theRest(false), 0)
	return err
}

// ConfineListening is Confine, and has calls that mount a new file system wait for an answer, which comes by the
// descriptor that it returns (seccomp_unotify(2)): mount(2), unless its flags say that it is about a mount which
// exists, and fsopen(2), of the ABI of this program. When nobody has the descriptor any more these calls fail. It is -1
// where they are not waited for: a kernel before 5.19, or a listener above this one already.
func ConfineListening() (listener int, err error) {
	if err := leaveKeys(); err != nil {
		return -1, err
	}
	// A signal that does not kill must not end the wait: the call would be made twice.
	listener, err = install(theRest(true), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBUSY) {
		listener = -1
		_, err = install(theRest(false), 0)
	}
	if err != nil {
		return -1, err
	}
	return listener, nil
}

func leaveKeys() error {
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil && !errors.Is(err, unix.ENOSYS) { // a kernel without keys
		return fmt.Errorf("leaving the host's session keyring: %w", err)
	}
	return nil
}

// install has the calling thread filtered, and returns what the kernel does.
func install(rest []bpf.Instruction, flags uintptr) (int, error) {
	program, err := bpf.Assemble(rest)
	if err != nil {
		return -1, fmt.Errorf("assembling the filter of system calls: %w", err)
	}
	filter := make([]unix.SockFilter, len(program))
	for i, one := range program {
		filter[i] = unix.SockFilter{Code: one.Op, Jt: one.Jt, Jf: one.Jf, K: one.K}
	}
	set := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}                                                       //nolint:gosec // G115: some fifty
	result, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&set))) //nolint:gosec // G103: the call takes a pointer
	if errno != 0 {
		return -1, fmt.Errorf("filtering system calls: %w", errno)
	}
	return int(result), nil
}

// theRest is the filter: with or without somebody who listens.
func theRest(listening bool) []bpf.Instruction {
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuse := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)} //nolint:gosec // G115: below 4096
	}
	var program []bpf.Instruction
	add := func(all ...bpf.Instruction) { program = append(program, all...) }
	for _, abi := range seccompABIs() {
		block := []bpf.Instruction{
			bpf.LoadAbsolute{Off: seccompNumber, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32, SkipFalse: 1},
			refuse(unix.ENOSYS),
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: ioURingFirst, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: ioURingLast, SkipTrue: 1},
			refuse(unix.ENOSYS),
		}
		for _, call := range abi.refused {
			block = append(block, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, refuse(unix.ENOSYS))
		}
		block = append(block, loopFilter(abi, refuse(unix.EPERM))...)
		if listening {
			block = append(block, mountFilter(abi)...)
		}
		block = append(block,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: abi.socket, SkipTrue: 3},
			bpf.LoadAbsolute{Off: seccompArgument, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_VSOCK, SkipTrue: 1},
			refuse(unix.EAFNOSUPPORT),
			allow,
		)
		add(bpf.LoadAbsolute{Off: seccompArch, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: abi.arch, SkipTrue: uint8(len(block))}) //nolint:gosec // G115: some thirty
		add(block...)
	}
	add(refuse(unix.ENOSYS))
	return program
}

// loopFilter refuses what changes loop devices, and leaves the number of the call where it found it.
func loopFilter(abi seccompABI, refuse bpf.Instruction) []bpf.Instruction {
	asked := []bpf.Instruction{bpf.LoadAbsolute{Off: seccompSecond, Size: 4}}
	for i, one := range loopHarmless {
		asked = append(asked, bpf.JumpIf{Cond: bpf.JumpEqual, Val: one, SkipTrue: uint8(len(loopHarmless) - i + 2)}) //nolint:gosec // G115: two
	}
	asked = append(asked,
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: loopFirst, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: loopLast, SkipTrue: 1},
		refuse,
		bpf.LoadAbsolute{Off: seccompNumber, Size: 4},
	)
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: abi.ioctl, SkipTrue: uint8(len(asked))}}, asked...) //nolint:gosec // G115: seven
}
