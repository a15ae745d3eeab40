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
	vm, err := bpf.NewVM(theRest(false))
	if err != nil {
		t.Fatal(err)
	}
	listening, err := bpf.NewVM(theRest(true))
	if err != nil {
		t.Fatal(err)
	}
	const allow = unix.SECCOMP_RET_ALLOW
	refused := func(errno unix.Errno) int { return int(unix.SECCOMP_RET_ERRNO | uint32(errno)) }
	abis := seccompABIs()
	native, compatible := abis[0], abis[1]
	for name, c := range map[string]struct {
		arch, number, argument, second uint32
		want                           int
	}{
		"a socket":                           {native.arch, native.socket, unix.AF_INET, 0, allow},
		"a socket to the host":               {native.arch, native.socket, unix.AF_VSOCK, 0, refused(unix.EAFNOSUPPORT)},
		"the same of 32 bits":                {compatible.arch, compatible.socket, unix.AF_VSOCK, 0, refused(unix.EAFNOSUPPORT)},
		"another call with that":             {native.arch, native.socket + 1, unix.AF_VSOCK, 0, allow},
		"before io_uring":                    {native.arch, ioURingFirst - 1, 0, 0, allow},
		"io_uring_setup":                     {native.arch, ioURingFirst, 0, 0, refused(unix.ENOSYS)},
		"io_uring_register, 32 bits":         {compatible.arch, ioURingLast, 0, 0, refused(unix.ENOSYS)},
		"after io_uring":                     {native.arch, ioURingLast + 1, 0, 0, allow},
		"x32":                                {native.arch, x32 | 1, 0, 0, refused(unix.ENOSYS)},
		"another architecture":               {0x1234, 1, 0, 0, refused(unix.ENOSYS)},
		"a call of the other's socket":       {native.arch, compatible.socket, unix.AF_VSOCK, 0, allow},
		"taking the file from a loop device": {native.arch, native.ioctl, 3, unix.LOOP_CLR_FD, refused(unix.EPERM)},
		"the same of 32 bits, as one":        {compatible.arch, compatible.ioctl, 3, unix.LOOP_CLR_FD, refused(unix.EPERM)},
		"the first of these":                 {native.arch, native.ioctl, 3, loopFirst, refused(unix.EPERM)},
		"the last of these":                  {native.arch, native.ioctl, 3, loopLast, refused(unix.EPERM)},
		"asking a loop device":               {native.arch, native.ioctl, 3, unix.LOOP_GET_STATUS64, allow},
		"asking it as before":                {native.arch, native.ioctl, 3, unix.LOOP_GET_STATUS, allow},
		"asking before these":                {native.arch, native.ioctl, 3, loopFirst - 1, allow},
		"asking after these":                 {native.arch, native.ioctl, 3, loopLast + 1, allow},
		"mounting anew":                      {native.arch, native.mounting[0], 0, 0, allow},
		"another call with that one":         {native.arch, native.ioctl + 1, 3, unix.LOOP_CLR_FD, allow},
	} {
		// The machine of package bpf reads numbers as networks have them, the kernel as the processor has them.
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data[seccompNumber:], c.number)
		binary.BigEndian.PutUint32(data[seccompArch:], c.arch)
		binary.BigEndian.PutUint32(data[seccompArgument:], c.argument)
		binary.BigEndian.PutUint32(data[seccompSecond:], c.second)
		if got, err := vm.Run(data); err != nil || uint32(got) != uint32(c.want) {
			t.Errorf("%s: %#x, want %#x: %v", name, got, c.want, err)
		}
		if c.arch == native.arch && c.number == native.mounting[0] {
			continue
		}
		if got, err := listening.Run(data); err != nil || uint32(got) != uint32(c.want) {
			t.Errorf("%s, with a listener: %#x, want %#x: %v", name, got, c.want, err)
		}
	}
}

// Who listens hears of mounts that are made anew, and of nothing else.
func TestListening(t *testing.T) {
	vm, err := bpf.NewVM(theRest(true))
	if err != nil {
		t.Fatal(err)
	}
	abis := seccompABIs()
	native, compatible := abis[0], abis[1]
	for name, c := range map[string]struct {
		arch, number, flags uint32
		heard               bool
	}{
		"anew":                            {native.arch, native.mounting[0], 0, true},
		"anew, with flags":                {native.arch, native.mounting[0], unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RELATIME | unix.MS_LAZYTIME, true},
		"anew, with magic":                {native.arch, native.mounting[0], magic | unix.MS_NODEV, true},
		"other bits than magic":           {native.arch, native.mounting[0], magic | 1<<28, false},
		"bind":                            {native.arch, native.mounting[0], unix.MS_BIND | unix.MS_REC, false},
		"bind, with magic":                {native.arch, native.mounting[0], magic | unix.MS_BIND, false},
		"again":                           {native.arch, native.mounting[0], unix.MS_REMOUNT | unix.MS_RDONLY, false},
		"again, with magic":               {native.arch, native.mounting[0], magic | unix.MS_REMOUNT, false},
		"moved":                           {native.arch, native.mounting[0], unix.MS_MOVE, false},
		"private":                         {native.arch, native.mounting[0], unix.MS_PRIVATE | unix.MS_REC, false},
		"slave":                           {native.arch, native.mounting[0], unix.MS_SLAVE, false},
		"shared":                          {native.arch, native.mounting[0], unix.MS_SHARED, false},
		"unbindable":                      {native.arch, native.mounting[0], unix.MS_UNBINDABLE, false},
		"fsopen":                          {native.arch, native.mounting[1], 0, true},
		"fsopen, whatever is in register": {native.arch, native.mounting[1], unix.MS_BIND, true},
		"fsconfig":                        {native.arch, native.mounting[1] + 1, 0, false},
		"umount2":                         {native.arch, native.mounting[0] + 1, 0, false},
		"of 32 bits":                      {compatible.arch, native.mounting[0], 0, false},
		"fsopen of 32 bits":               {compatible.arch, native.mounting[1], 0, false},
	} {
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data[seccompNumber:], c.number)
		binary.BigEndian.PutUint32(data[seccompArch:], c.arch)
		binary.BigEndian.PutUint32(data[seccompFourth:], c.flags)
		want := uint32(unix.SECCOMP_RET_ALLOW)
		if c.heard {
			want = unix.SECCOMP_RET_USER_NOTIF
		}
		if got, err := vm.Run(data); err != nil || uint32(got) != want {
			t.Errorf("%s: %#x, want %#x: %v", name, got, want, err)
		}
		if c.number == native.mounting[0] && c.arch == native.arch {
			if _, anew := IsNewMount(uint64(c.flags)); anew != c.heard {
				t.Errorf("%s: IsNewMount says %v", name, anew)
			}
		}
	}
}

// The kernel takes the filter, and it does what it says.
func TestConfine(t *testing.T) {
	done := make(chan [4]error, 1)
	go host.OnThread(func() {
		var all [4]error
		all[0] = Confine()
		_, all[1] = unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if all[2] = err; err == nil {
			all[3] = unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0)
			_ = unix.Close(fd)
		}
		done <- all
	})
	if all := <-done; all[0] != nil || !errors.Is(all[1], unix.EAFNOSUPPORT) || all[2] != nil || !errors.Is(all[3], unix.EPERM) {
		t.Errorf("the filter: %v; a socket to the host: %v; another: %v; a loop device: %v", all[0], all[1], all[2], all[3])
	}
}
