// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

func TestTheRest(t *testing.T) {
	vm, err := bpf.NewVM(theRest())
	if err != nil {
		t.Fatal(err)
	}
	const allow = unix.SECCOMP_RET_ALLOW
	refused := func(errno unix.Errno) int { return int(unix.SECCOMP_RET_ERRNO | uint32(errno)) }
	abis := seccompABIs()
	native, compatible := abis[0], abis[1]
	for name, c := range map[string]struct {
		arch, number, argument uint32
		want                   int
	}{
		"a socket":                     {native.arch, native.socket, unix.AF_INET, allow},
		"a socket to the host":         {native.arch, native.socket, unix.AF_VSOCK, refused(unix.EAFNOSUPPORT)},
		"the same of 32 bits":          {compatible.arch, compatible.socket, unix.AF_VSOCK, refused(unix.EAFNOSUPPORT)},
		"another call with that":       {native.arch, native.socket + 1, unix.AF_VSOCK, allow},
		"before io_uring":              {native.arch, ioURingFirst - 1, 0, allow},
		"io_uring_setup":               {native.arch, ioURingFirst, 0, refused(unix.ENOSYS)},
		"io_uring_register, 32 bits":   {compatible.arch, ioURingLast, 0, refused(unix.ENOSYS)},
		"after io_uring":               {native.arch, ioURingLast + 1, 0, allow},
		"x32":                          {native.arch, x32 | 1, 0, refused(unix.ENOSYS)},
		"another architecture":         {0x1234, 1, 0, refused(unix.ENOSYS)},
		"a call of the other's socket": {native.arch, compatible.socket, unix.AF_VSOCK, allow},
	} {
		// The machine of package bpf reads numbers as networks have them, the kernel as the processor has them.
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data[seccompNumber:], c.number)
		binary.BigEndian.PutUint32(data[seccompArch:], c.arch)
		binary.BigEndian.PutUint32(data[seccompArgument:], c.argument)
		if got, err := vm.Run(data); err != nil || uint32(got) != uint32(c.want) {
			t.Errorf("%s: %#x, want %#x: %v", name, got, c.want, err)
		}
	}
}

// The kernel takes the filter, and it does what it says.
func TestConfine(t *testing.T) {
	done := make(chan [3]error, 1)
	go host.OnThread(func() {
		var all [3]error
		all[0] = Confine()
		_, all[1] = unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if all[2] = err; err == nil {
			_ = unix.Close(fd)
		}
		done <- all
	})
	if all := <-done; all[0] != nil || !errors.Is(all[1], unix.EAFNOSUPPORT) || all[2] != nil {
		t.Errorf("the filter: %v; a socket to the host: %v; another: %v", all[0], all[1], all[2])
	}
}
