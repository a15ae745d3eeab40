// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Layout of the kernel's description of the device (struct bpf_cgroup_dev_ctx in linux/bpf.h): access << 16 | type,
// major, minor.
const (
	accessOffset, majorOffset, minorOffset = 0, 4, 8
	accessShift                            = 16
	accessMake                             = 1 // BPF_DEVCG_ACC_MKNOD
	typeMask                               = 1<<accessShift - 1
	typeBlock                              = 1 // BPF_DEVCG_DEV_BLOCK
	typeCharacter                          = 2 // BPF_DEVCG_DEV_CHAR
)

// program is what the kernel runs for a group: 1 lets the device be opened.
func program(allowed []Rule) asm.Instructions {
	const end = "end"
	code := asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, accessOffset, asm.Word),
		asm.LoadMem(asm.R3, asm.R1, majorOffset, asm.Word),
		asm.LoadMem(asm.R4, asm.R1, minorOffset, asm.Word),
		asm.Mov.Imm(asm.R0, 0),
		asm.Mov.Reg(asm.R5, asm.R2),
		asm.RSh.Imm(asm.R5, accessShift),
		asm.And.Imm(asm.R5, accessMake),
		asm.JNE.Imm(asm.R5, 0, end),
		asm.And.Imm(asm.R2, typeMask),
	}
	for i, rule := range allowed {
		kind, next := int32(typeCharacter), "after "+strconv.Itoa(i)
		if rule.Block {
			kind = typeBlock
		}
		code = append(code, asm.JNE.Imm(asm.R2, kind, next), asm.JNE.Imm(asm.R3, int32(rule.Major), next)) //nolint:gosec // G115: 12 bits
		if !rule.EveryMinor {
			code = append(code, asm.JNE.Imm(asm.R4, int32(rule.Minor), next)) //nolint:gosec // G115: 20 bits
		}
		code = append(code, asm.Mov.Imm(asm.R0, 1), asm.Ja.Label(end), asm.Mov.Imm(asm.R0, 0).WithSymbol(next))
	}
	return append(code, asm.Return().WithSymbol(end))
}

// limit2 attaches a program to a version 2 group, which has it until it is removed. Other programs, such as those of
// systemd, have their say besides.
//
// Kernels before 5.11 count programs as locked memory, whose limit is low; machines with ids of their own need 5.12.
// Package rlimit of the library is left out for that, and because it asks bpf(2) in each program that it is linked
// into, as that starts.
func limit2(dir string, allowed []Rule) (err error) {
	loaded, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "muster_devices", Type: ebpf.CGroupDevice, Instructions: program(allowed), License: "Apache-2.0"})
	if err != nil {
		return none(fmt.Errorf("loading the program of device control: %w", err), lacking()...) // EACCES would be a program that is wrong
	}
	defer func() { err = errors.Join(err, loaded.Close()) }()
	group, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = group.Close() }()
	return none(link.RawAttachProgram(link.RawAttachProgramOptions{
		Target: int(group.Fd()), Program: loaded, Attach: ebpf.AttachCGroupDevice, Flags: unix.BPF_F_ALLOW_MULTI,
	}), lacking()...)
}

// lacking are errors of bpf(2) for who may not call it, in a kernel without it, or without programs of control groups.
func lacking() []error { return []error{unix.EPERM, unix.ENOSYS, unix.EINVAL, ebpf.ErrNotSupported} }
