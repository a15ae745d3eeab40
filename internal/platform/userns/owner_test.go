// SPDX-License-Identifier: Apache-2.0

package userns_test

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ioctlOwner asks for the user that a user namespace belongs to (ioctl_nsfs(2)).
func ioctlOwner(namespace *os.File, owner *uint32) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, namespace.Fd(), unix.NS_GET_OWNER_UID, uintptr(unsafe.Pointer(owner))); errno != 0 {
		return errno
	}
	return nil
}
