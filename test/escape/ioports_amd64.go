// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "golang.org/x/sys/unix"

// ioPorts asks for the port that BIOSes write their progress to, for this process alone, and uses it for nothing.
func ioPorts(*world) finding {
	const port = 0x80
	if _, _, errno := unix.Syscall(unix.SYS_IOPERM, port, 1, 1); errno != 0 {
		return refused("asking for an I/O port", errno)
	}
	return out("might use an I/O port of the host")
}
