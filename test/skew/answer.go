// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// noCall is a number of no system call: the kernel makes none, and leaves the result that a tracer wrote (seccomp(2)).
const noCall = ^uint64(0)

// answer answers a system call for the time of day in the kernel's place.
func (t tracer) answer(thread int) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &r); err != nil {
		return fmt.Errorf("reading what is asked: %w", err)
	}
	clock := int32(unix.CLOCK_REALTIME)
	into := uintptr(r.Rdi)
	if r.Orig_rax == unix.SYS_CLOCK_GETTIME {
		clock, into = int32(r.Rdi), uintptr(r.Rsi) //nolint:gosec // G115: an int is the register's lower half
	}
	var right unix.Timespec
	err := unix.ClockGettime(clock, &right)
	wrong := time.Unix(right.Unix()).Add(t.offset)
	result := uint64(0)
	if err == nil && r.Orig_rax == unix.SYS_TIME {
		result = uint64(wrong.Unix()) //nolint:gosec // G115: a register has no sign
	}
	if err == nil {
		err = t.write(thread, &r, into, wrong)
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok && (errno == unix.EFAULT || errno == unix.EINVAL) {
		result, err = -uint64(errno), nil // no place to write to, or no such clock: that is the command's to know
	}
	if err != nil {
		return fmt.Errorf("answering what time it is: %w", err)
	}
	r.Orig_rax, r.Rax = noCall, result
	return unix.PtraceSetRegs(thread, &r)
}

// write writes a time to where a system call wants it, and in its form.
func (tracer) write(thread int, r *unix.PtraceRegs, into uintptr, at time.Time) error {
	switch r.Orig_rax {
	case unix.SYS_CLOCK_GETTIME:
		return put(thread, into, at.Unix(), int64(at.Nanosecond()))
	case unix.SYS_GETTIMEOFDAY:
		var err error
		if into != 0 {
			err = put(thread, into, at.Unix(), int64(at.Nanosecond()/1000))
		}
		if zone := uintptr(r.Rsi); err == nil && zone != 0 {
			err = put(thread, zone, 0) // west of Greenwich, and summer: nobody sets it
		}
		return err
	case unix.SYS_TIME:
		if into == 0 {
			return nil
		}
		return put(thread, into, at.Unix())
	}
	return fmt.Errorf("system call %d does not ask for the time", r.Orig_rax)
}

// put writes words to a thread's memory.
func put(thread int, at uintptr, words ...int64) error {
	var raw []byte
	for _, word := range words {
		raw = binary.NativeEndian.AppendUint64(raw, uint64(word)) //nolint:gosec // G115: nor has memory
	}
	local := []unix.Iovec{{Base: &raw[0]}}
	local[0].SetLen(len(raw))
	n, err := unix.ProcessVMWritev(thread, local, []unix.RemoteIovec{{Base: at, Len: len(raw)}}, 0)
	if err == nil && n != len(raw) {
		err = unix.EFAULT
	}
	return err
}
