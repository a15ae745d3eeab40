// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Flags by which mount(2) is about a mount that exists.
const (
	existing = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_MOVE | unix.MS_UNBINDABLE | unix.MS_PRIVATE | unix.MS_SLAVE | unix.MS_SHARED
	// magic may be in the upper half of the flags, and then means nothing, as in old programs (MS_MGC_VAL).
	magic, upper = 0xc0ed0000, 0xffff0000
)

// IsNewMount reports whether mount(2) with these flags mounts a file system anew, and returns the flags without what
// means nothing.
func IsNewMount(flags uint64) (uint64, bool) {
	if flags&upper == magic {
		flags &^= upper
	}
	return flags, flags&existing == 0
}

// mountFilter has calls that mount a file system anew wait for who listens, and leaves the number of the call where it
// found it.
func mountFilter(abi seccompABI) []bpf.Instruction {
	if abi.mounting == [2]uint32{} {
		return nil
	}
	wait := bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}
	flags := bpf.LoadAbsolute{Off: seccompFourth, Size: 4}
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: abi.mounting[0], SkipTrue: 9},
		flags,
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: upper},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: magic, SkipTrue: 2},
		flags,
		bpf.Jump{Skip: 2},
		flags,
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(upper)},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: existing, SkipTrue: 1},
		wait,
		bpf.LoadAbsolute{Off: seccompNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: abi.mounting[1], SkipTrue: 1},
		wait,
	}
}
