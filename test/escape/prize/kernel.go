// SPDX-License-Identifier: Apache-2.0

package prize

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/loopdevice"
)

// plantLoop makes a block device whose content and whose file's name have the token.
func (p *Planted) plantLoop(dir string) error {
	if _, err := os.Stat("/dev/loop-control"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	path := filepath.Join(dir, "canary."+p.Token)
	if err := os.WriteFile(path, p.text(), 0o600); err != nil {
		return err
	}
	if err := os.Truncate(path, 64<<10); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	device, err := loopdevice.Attach(file, "canary."+p.Token, false)
	if err != nil {
		return err
	}
	p.later(func() error { return loopdevice.Detach(device) })
	var stat unix.Stat_t
	if err := unix.Stat(device.Node(), &stat); err != nil {
		return err
	}
	p.Map.CanaryDevice = fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	return nil
}

// plantProcess starts a process that has the token in its environment.
func (p *Planted) plantProcess(string) error {
	cmd := exec.Command("sleep", "600") //nolint:noctx // Close ends it
	cmd.Dir, cmd.Env = "/", []string{"MUSTER_ESCAPE=" + p.Token}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel takes the end of the thread that started a process for the end of its parent
		// (PR_SET_PDEATHSIG(2const)).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // Close kills it
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.Map.HostPID = cmd.Process.Pid
	p.later(func() error {
		_ = cmd.Process.Kill()
		<-ended
		return nil
	})
	return nil
}

// keySeconds is when the kernel forgets the key even if nobody takes it back.
const keySeconds = 600

// plantKey puts a key into the user keyring of the host's root, for every process of that user.
func (p *Planted) plantKey(string) error {
	p.Map.HostKey = "muster-escape:" + p.Token[:8]
	id, err := unix.AddKey("user", p.Map.HostKey, p.text(), unix.KEY_SPEC_USER_KEYRING)
	if errors.Is(err, unix.ENOSYS) {
		p.Map.HostKey = ""
		return nil
	}
	if err != nil {
		return err
	}
	p.later(func() error {
		_, err := unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0)
		return err
	})
	p.Map.HostKeySerial = id
	const allOfUser = 0x3f3f0000 // the possessor and the user may do everything
	if err := unix.KeyctlSetperm(id, allOfUser); err != nil {
		return err
	}
	_, err = unix.KeyctlInt(unix.KEYCTL_SET_TIMEOUT, id, keySeconds, 0, 0)
	return err
}

// plantSockets listens on an abstract name and on a path in the shared directory, and binds a vsock port.
func (p *Planted) plantSockets(string) error {
	p.Map.HostSocket = "muster-escape-" + rand.Text()
	path := filepath.Join(p.Shared, "socket")
	for _, address := range []string{"@" + p.Map.HostSocket, path} {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
		if err != nil {
			return err
		}
		p.later(listener.Close)
		go func() {
			for {
				connection, err := listener.AcceptUnix()
				if err != nil { // closed
					return
				}
				_, _ = connection.Write(p.text())
				_ = connection.Close()
			}
		}()
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	vsock, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil { // a kernel without it
		return nil //nolint:nilerr // the place stays empty
	}
	p.later(func() error { return unix.Close(vsock) })
	if err := unix.Bind(vsock, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: unix.VMADDR_PORT_ANY}); err != nil {
		return err
	}
	bound, err := unix.Getsockname(vsock)
	if err != nil {
		return err
	}
	if vm, ok := bound.(*unix.SockaddrVM); ok {
		p.Map.HostVsock = int(vm.Port)
	}
	return unix.Listen(vsock, 1)
}

// plantMemory makes a System V shared memory segment.
func (p *Planted) plantMemory(string) error {
	var key [4]byte
	_, _ = rand.Read(key[:]) // it never fails
	p.Map.HostMemory = int(binary.LittleEndian.Uint32(key[:])>>2) + 1
	id, err := unix.SysvShmGet(p.Map.HostMemory, os.Getpagesize(), unix.IPC_CREAT|unix.IPC_EXCL|0o600)
	if err != nil {
		return err
	}
	p.later(func() error {
		_, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		return err
	})
	data, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	copy(data, p.text())
	return unix.SysvShmDetach(data)
}

// bpfMap is the part of union bpf_attr (linux/bpf.h) that makes a map.
type bpfMap struct{ kind, keySize, valueSize, entries, flags uint32 }

// bpfElement is the part that changes an element of a map.
type bpfElement struct {
	fd, _             uint32
	key, value, flags uint64
}

// plantBPF makes a BPF map, as programs of the host have.
func (p *Planted) plantBPF(string) error {
	attr := bpfMap{kind: unix.BPF_MAP_TYPE_ARRAY, keySize: 4, valueSize: 64, entries: 1}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)) //nolint:gosec // G103: that is how it is called
	if errno != 0 {                                                                                                      // a kernel without it, or a sandbox
		return nil //nolint:nilerr // the place stays empty
	}
	p.later(func() error { return unix.Close(int(fd)) })
	var key uint32
	var value [64]byte
	copy(value[:], p.text())
	element := bpfElement{fd: uint32(fd), key: uint64(uintptr(unsafe.Pointer(&key))), value: uint64(uintptr(unsafe.Pointer(&value)))} //nolint:gosec // G103: that is how it is called
	_, _, errno = unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_UPDATE_ELEM, uintptr(unsafe.Pointer(&element)), unsafe.Sizeof(element))     //nolint:gosec // G103: that is how it is called
	runtime.KeepAlive(&key)
	runtime.KeepAlive(&value)
	if errno != 0 {
		return errno
	}
	p.Map.HostBPF = true
	return nil
}
