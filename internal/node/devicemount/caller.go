// SPDX-License-Identifier: Apache-2.0

package devicemount

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// caller is a thread that waits within mount(2), and what is needed to see paths as it does.
type caller struct {
	mounts, root, cwd int
	rights
}

// rights are those by which a thread finds files and mounts.
type rights struct {
	fsUID, fsGID int
	effective    uint64 // capabilities
}

// errNotOurs says that the kernel is to answer a call: as it would if nobody had heard of it.
var errNotOurs = errors.New("the kernel's to answer")

// open takes hold of a caller that may mount. Its number is its own if it still waits afterwards.
func open(tid uint32) (*caller, error) {
	proc, err := unix.Open("/proc/"+strconv.Itoa(int(tid)), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errNotOurs
	}
	defer func() { _ = unix.Close(proc) }()
	status, err := readAt(proc, "status")
	if err != nil {
		return nil, errNotOurs
	}
	its, err := parseRights(status)
	if err != nil || its.effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return nil, errNotOurs
	}
	var namespace, own unix.Stat_t
	if err := errors.Join(unix.Fstatat(proc, "ns/user", &namespace, 0), unix.Stat("/proc/self/ns/user", &own)); err != nil || namespace.Ino != own.Ino || namespace.Dev != own.Dev {
		return nil, errNotOurs // a user namespace of its own has no devices
	}
	c := &caller{rights: its, mounts: -1, root: -1, cwd: -1}
	for name, fd := range map[string]*int{"ns/mnt": &c.mounts, "root": &c.root, "cwd": &c.cwd} {
		flags := unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
		if name == "ns/mnt" {
			flags = unix.O_RDONLY | unix.O_CLOEXEC
		}
		if *fd, err = unix.Openat(proc, name, flags, 0); err != nil {
			c.close()
			return nil, errNotOurs
		}
	}
	return c, nil
}

func (c *caller) close() {
	for _, fd := range []int{c.mounts, c.root, c.cwd} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// readAt reads a small file of proc(5).
func readAt(dir int, name string) (string, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	file := os.NewFile(uintptr(fd), name)
	defer func() { _ = file.Close() }()
	buffer := make([]byte, 16<<10)
	n, err := file.Read(buffer)
	return string(buffer[:n]), err
}

// parseRights reads them from /proc/PID/status, as this process's namespace has the ids.
func parseRights(status string) (r rights, err error) {
	found := 0
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch {
		case name == "Uid" && len(fields) == 4:
			r.fsUID, err = strconv.Atoi(fields[3])
		case name == "Gid" && len(fields) == 4:
			r.fsGID, err = strconv.Atoi(fields[3])
		case name == "CapEff" && len(fields) == 1:
			r.effective, err = strconv.ParseUint(fields[0], 16, 64)
		default:
			continue
		}
		if err != nil {
			return rights{}, err
		}
		found++
	}
	if found != 3 {
		return rights{}, errors.New("a thread without ids or capabilities")
	}
	return r, nil
}

// maxString is how long a string may be that is read from a caller, with the zero at its end: as long as a path may be
// for the kernel, or options of a mount.
const maxString = 4096

// readString reads a string from the memory of a caller.
func readString(tid uint32, address uint64) (string, error) {
	const page = 4096
	var read []byte
	for len(read) < maxString {
		part := make([]byte, min(maxString-len(read), int(page-address%page)))
		n, err := unix.ProcessVMReadv(int(tid), []unix.Iovec{{Base: &part[0], Len: uint64(len(part))}}, []unix.RemoteIovec{{Base: uintptr(address), Len: len(part)}}, 0)
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(part[:n], 0); end >= 0 {
			return string(append(read, part[:end]...)), nil
		}
		if n < len(part) {
			return "", unix.EFAULT
		}
		read = append(read, part...)
		address += uint64(len(part))
	}
	return "", unix.ENAMETOOLONG
}

// as calls fn on a thread that is where the caller is, and has no rights to files or mounts that it has not.
func (c *caller) as(fn func() error) error {
	done := make(chan error, 1)
	go host.OnThread(func() { // the thread ends with what was done to it
		if err := c.become(); err != nil {
			done <- err
			return
		}
		done <- fn()
	})
	return <-done
}

func (c *caller) become() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leaving this process's directories: %w", err)
	}
	if err := unix.Setns(c.mounts, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering the caller's mount namespace: %w", err)
	}
	for _, err := range []error{unix.Fchdir(c.root), unix.Chroot("."), unix.Fchdir(c.cwd)} {
		if err != nil {
			return fmt.Errorf("entering the caller's root directory: %w", err)
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leaving groups: %w", errno)
	}
	for _, call := range [][2]uintptr{{unix.SYS_SETFSGID, uintptr(c.fsGID)}, {unix.SYS_SETFSUID, uintptr(c.fsUID)}} {
		_, _, _ = unix.RawSyscall(call[0], call[1], 0, 0)                                             // says what it was before
		if now, _, _ := unix.RawSyscall(call[0], ^uintptr(0), 0, 0); uint32(now) != uint32(call[1]) { //nolint:gosec // G115: an id
			return fmt.Errorf("becoming the caller's user: %w", unix.EPERM)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("reading capabilities: %w", err)
	}
	sets[0].Effective = sets[0].Permitted & uint32(c.effective) //nolint:gosec // G115: the lower half
	sets[1].Effective = sets[1].Permitted & uint32(c.effective>>32)
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	return nil
}
