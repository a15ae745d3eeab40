// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package main

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where a filter finds what it judges (struct seccomp_data in linux/seccomp.h). A clock's number is an int: the lower
// half of an argument.
const (
	atNumber        = 0
	atArchitecture  = 4
	atFirstArgument = 16
)

// x32 is the bit by which system calls of the third architecture differ that such a kernel may know
// (arch/x86/include/uapi/asm/unistd.h).
const x32 = 0x40000000

// wallClocks are those that tell the time of day.
func wallClocks() []uint32 {
	return []uint32{unix.CLOCK_REALTIME, unix.CLOCK_REALTIME_COARSE, unix.CLOCK_REALTIME_ALARM, unix.CLOCK_TAI}
}

// filter stops system calls that ask for the time of day for the tracer, and lets others pass. A program of another
// architecture would ask by other numbers: it is killed.
func filter() []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(with uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with}
	}
	// unless skips the next instruction if the value is that one; when and atLeast do if it is not.
	unless := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: 1}
	}
	when := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: 1}
	}
	atLeast := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: value, Jf: 1}
	}
	program := []unix.SockFilter{
		load(atArchitecture), unless(unix.AUDIT_ARCH_X86_64), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(atNumber),
		atLeast(x32), answer(unix.SECCOMP_RET_KILL_PROCESS),
		when(unix.SYS_GETTIMEOFDAY), answer(unix.SECCOMP_RET_TRACE),
		when(unix.SYS_TIME), answer(unix.SECCOMP_RET_TRACE),
		unless(unix.SYS_CLOCK_GETTIME), answer(unix.SECCOMP_RET_ALLOW),
		load(atFirstArgument),
	}
	for _, clock := range wallClocks() {
		program = append(program, when(clock), answer(unix.SECCOMP_RET_TRACE))
	}
	return append(program, answer(unix.SECCOMP_RET_ALLOW))
}

// installFilter judges the system calls of this thread from now on, and of what it executes.
func installFilter() error {
	program := filter()
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]} //nolint:gosec // G115: there are two dozen
	err := seccomp(&header)
	if errors.Is(err, unix.EACCES) {
		// Others than root may have filters if they give up gaining privileges (seccomp(2)).
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("giving up new privileges: %w", err)
		}
		err = seccomp(&header)
	}
	runtime.KeepAlive(program)
	if err != nil {
		return fmt.Errorf("filtering system calls: %w", err)
	}
	return nil
}

func seccomp(program *unix.SockFprog) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(program))); errno != 0 { //nolint:gosec // G103: that is how it is called
		return errno
	}
	return nil
}
