// SPDX-License-Identifier: Apache-2.0

package devicemount

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is a call that waits: the kernel's struct seccomp_notif.
type notification struct {
	id    uint64
	pid   uint32 // of the thread that calls, as this process sees it
	flags uint32
	call  int32
	arch  uint32
	at    uint64
	args  [6]uint64
}

// response is the kernel's struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// goOn has the kernel do the call as if nobody had heard of it (SECCOMP_USER_NOTIF_FLAG_CONTINUE).
const goOn = 1

// wakeInTurn is SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP.
const wakeInTurn = 1

// sizes is the kernel's struct seccomp_notif_sizes.
type sizes struct{ notification, response, data uint16 }

// listener hears of calls that wait.
type listener struct {
	fd     int
	buffer []uint64 // as large as what the kernel writes
	answer []uint64 // as large as what it reads
}

// newListener takes a descriptor of seccomp_unotify(2).
func newListener(fd int) (*listener, error) {
	var s sizes
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&s))); errno != 0 { //nolint:gosec // G103: the call takes a pointer
		return nil, fmt.Errorf("asking for the size of notifications: %w", errno)
	}
	// Whoever waits and whoever answers take turns, so they had best be on one processor. Linux before 6.6 does not
	// know that.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, wakeInTurn)
	words := func(kernels uint16, own uintptr) []uint64 { return make([]uint64, (max(uintptr(kernels), own)+7)/8) }
	return &listener{
		fd: fd, buffer: words(s.notification, unsafe.Sizeof(notification{})), answer: words(s.response, unsafe.Sizeof(response{})),
	}, nil
}

// next waits for a call.
func (l *listener) next() (notification, error) {
	for {
		clear(l.buffer)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&l.buffer[0]))) //nolint:gosec // G103: the call takes a pointer
		if errno == 0 {
			return *(*notification)(unsafe.Pointer(&l.buffer[0])), nil //nolint:gosec // G103: it is at least as large
		}
		if !errors.Is(errno, unix.EINTR) && !errors.Is(errno, unix.ENOENT) { // the caller was killed just now
			return notification{}, errno
		}
	}
}

// respond answers a call. A call whose caller is gone needs no answer.
func (l *listener) respond(r response) error {
	answer := make([]uint64, len(l.answer))
	*(*response)(unsafe.Pointer(&answer[0])) = r                                                                                   //nolint:gosec // G103: it is at least as large
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer[0]))) //nolint:gosec // G103: the call takes a pointer
	if errno != 0 && !errors.Is(errno, unix.ENOENT) {
		return errno
	}
	return nil
}

// waits reports whether a call still waits: what was opened of its caller by number before is the caller's then, and
// nobody's who came after.
func (l *listener) waits(id uint64) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id))) //nolint:gosec // G103: the call takes a pointer
	return errno == 0
}
