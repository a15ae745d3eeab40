// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// giveUpRights takes all capabilities from every thread for good: what is left is an owner of files and a maker of
// ordinary sockets. It takes a program without cgo, as ours are built: with it threads that are not Go's would keep
// theirs, and it fails.
func giveUpRights() error {
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("giving up new privileges: %w", errno)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3} // of the calling thread itself
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0) //nolint:gosec // G103: the form that capset(2) has
	if errno != 0 {
		return fmt.Errorf("giving up capabilities: %w", errno)
	}
	return nil
}
