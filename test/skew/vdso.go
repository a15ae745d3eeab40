// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Keys of a program's auxiliary vector (getauxval(3), linux/auxvec.h).
const (
	auxEnd    = 0
	auxIgnore = 1
	auxVDSO   = 33 // AT_SYSINFO_EHDR
)

// hideClocks keeps a program that is about to begin from finding the kernel's code for clocks in its memory. Above its
// stack it finds the number of its arguments, the arguments and a nil, the environment and a nil, and then the vector
// (System V ABI, AMD64, section 3.4.1).
func hideClocks(thread int) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &r); err != nil {
		return fmt.Errorf("reading where the stack is: %w", err)
	}
	stack := words{thread: thread, next: uintptr(r.Rsp)}
	arguments, err := stack.read()
	if err != nil {
		return err
	}
	for range arguments + 1 {
		if _, err := stack.read(); err != nil {
			return err
		}
	}
	for variable := uint64(1); variable != 0; {
		if variable, err = stack.read(); err != nil {
			return err
		}
	}
	for {
		at := stack.next
		kind, err := stack.read()
		if err != nil {
			return err
		}
		switch kind {
		case auxEnd: // this kernel shows none
			return nil
		case auxVDSO:
			return put(thread, at, auxIgnore)
		}
		if _, err := stack.read(); err != nil {
			return err
		}
	}
}

// words reads a thread's memory from a place on.
type words struct {
	thread int
	next   uintptr
	ahead  []byte
}

const wordSize = 8

func (w *words) read() (uint64, error) {
	if len(w.ahead) == 0 {
		raw := make([]byte, 4<<10)
		local := []unix.Iovec{{Base: &raw[0]}}
		local[0].SetLen(len(raw))
		// Memory behind the end of the stack is left out.
		n, err := unix.ProcessVMReadv(w.thread, local, []unix.RemoteIovec{{Base: w.next, Len: len(raw) - int(w.next%uintptr(len(raw)))}}, 0)
		if err != nil {
			return 0, fmt.Errorf("reading the stack: %w", err)
		}
		if w.ahead = raw[:n-n%wordSize]; len(w.ahead) == 0 {
			return 0, errors.New("the stack ends before what was looked for")
		}
	}
	word := binary.NativeEndian.Uint64(w.ahead)
	w.ahead, w.next = w.ahead[wordSize:], w.next+wordSize
	return word, nil
}
