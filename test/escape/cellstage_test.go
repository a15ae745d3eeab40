// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stage is the first process of a cell, as the host's root, or the process that becomes the program.
func stage(raw string) error {
	runtime.LockOSThread()
	var c cell
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		return err
	}
	if os.Getpid() == 1 {
		return c.become()
	}
	if _, err := os.Stdin.Read(make([]byte, 1)); err == nil { // it ends when the control groups are there
		return errors.New("unexpected order")
	}
	if err := session(); err != nil {
		return fmt.Errorf("making a session keyring: %w", err)
	}
	if err := c.build(); err != nil {
		return err
	}
	code, err := c.start()
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

// session gives the starter a session keyring that leads to its user's keys, as one who logs in has it
// (pam_keyinit(8)).
func session() error {
	ring, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if errors.Is(err, unix.ENOSYS) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = unix.KeyctlInt(unix.KEYCTL_LINK, unix.KEY_SPEC_USER_KEYRING, ring, 0, 0)
	return err
}

// cellRoot is where its root is built, in a mount namespace of its own: the root of a user namespace has no way into
// the test's directory.
const cellRoot = "/mnt"

func (c cell) root(path string) string { return filepath.Join(cellRoot, path) }

// build makes the cell's root. With a user namespace, what is mounted now is locked in it.
func (c cell) build() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	owner := 0
	if c.Users {
		owner = c.Base
	}
	if err := unix.Mount("cell", c.root(""), "tmpfs", 0, fmt.Sprintf("size=%d,mode=755,uid=%d,gid=%d", diskOfCell, owner, owner)); err != nil {
		return err
	}
	for _, dir := range []string{"proc", "sys", "dev", "shared", "volume", "mnt", "tmp", "old", "bin"} {
		if err := errors.Join(os.Mkdir(c.root(dir), 0o755), os.Chown(c.root(dir), owner, owner)); err != nil {
			return err
		}
	}
	program, err := os.ReadFile(c.Program)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(c.root("bin/escape"), program, 0o600), os.Chmod(c.root("bin/escape"), 0o755)); err != nil {
		return err
	}
	if err := unix.Mount(c.Volume, c.root("volume"), "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := c.share(c.root("shared")); err != nil {
		return err
	}
	return c.devices()
}

// share shows the host's directory, read-only.
func (c cell) share(at string) error {
	if err := unix.Mount(c.Shared, at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NODEV|unix.MS_NOSUID, "")
}

// devices makes what a machine without a user namespace has, loop devices included, or shows the host's harmless ones.
func (c cell) devices() error {
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		if err := c.device(name, unix.S_IFCHR|0o666, 1, minor); err != nil {
			return err
		}
	}
	if err := c.device("fuse", unix.S_IFCHR|0o666, 10, 229); err != nil || c.Users {
		return err
	}
	if err := errors.Join(c.device("kmsg", unix.S_IFCHR|0o600, 1, 11), c.device("loop-control", unix.S_IFCHR|0o600, 10, 237)); err != nil {
		return err
	}
	const loops = 128
	for n := range uint32(loops) {
		if err := c.device(fmt.Sprintf("loop%d", n), unix.S_IFBLK|0o600, loopMajor, n); err != nil {
			return err
		}
	}
	return nil
}

func (c cell) device(name string, mode, major, minor uint32) error {
	path := c.root("dev/" + name)
	if !c.Users {
		return unix.Mknod(path, mode, int(unix.Mkdev(major, minor)))
	}
	if _, err := os.Stat("/dev/" + name); err != nil {
		return nil //nolint:nilerr // a host without it
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	// The host's node is root's; the machine has one that is everybody's.
	node := filepath.Join(c.Dir, name)
	if err := errors.Join(unix.Mknod(node, mode, int(unix.Mkdev(major, minor))), os.Chmod(node, 0o666)); err != nil {
		return err
	}
	return unix.Mount(node, path, "", unix.MS_BIND, "")
}

// start starts the process that becomes the program, and returns its exit status.
func (c cell) start() (int, error) {
	cmd := exec.Command(self)
	cmd.Env, cmd.Stdout, cmd.Stderr = os.Environ(), os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		Pdeathsig:  syscall.SIGKILL,
	}
	if c.Users {
		if err := c.own(cmd.SysProcAttr); err != nil {
			return 0, err
		}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// own makes the calling thread the owner of the user namespace that it is about to make, with the rights to map a
// range.
func (c cell) own(attr *syscall.SysProcAttr) error {
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: c.Base, Size: ids}}
	attr.GidMappings = attr.UidMappings
	attr.GidMappingsEnableSetgroups = true
	attr.Credential = &syscall.Credential{}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	same := ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(cmp.Or(c.Owner, c.Base)), same); errno != 0 {
		return errno
	}
	return unix.Capset(&header, &data[0]) // a change of the effective user takes them
}

// become turns the calling process into the program in the cell.
func (c cell) become() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	root := c.root("")
	if c.Users { // a mount of its own, since the one that is there is locked
		if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("binding the root: %w", err)
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "old"); err != nil {
		return fmt.Errorf("changing root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		return fmt.Errorf("mounting proc: %w", err)
	}
	if !c.Users { // as a machine of today
		if err := errors.Join(
			unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""),
			unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|flags, ""),
			unix.Mount("sysfs", "/sys", "sysfs", flags, ""),
			unix.Mount("", "/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|flags, ""),
		); err != nil {
			return fmt.Errorf("mounting the kernel's: %w", err)
		}
	}
	if c.Objects { // allowed for as long as the host's is seen (fs/namespace.c, mnt_already_visible)
		if err := unix.Mount("sysfs", "/sys", "sysfs", flags, ""); err != nil {
			return fmt.Errorf("mounting the kernel's objects: %w", err)
		}
	}
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the host's root: %w", err)
	}
	if err := unix.Sethostname([]byte("cell")); err != nil {
		return err
	}
	if err := c.close(); err != nil {
		return err
	}
	return syscall.Exec("/bin/escape", c.Args, []string{"PATH=/bin"})
}

// close closes what a user namespace leaves open: the keyring that the starter's session has, vsock and io_uring.
func (c cell) close() error {
	if c.Users && !c.NoKeyring {
		if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil {
			return fmt.Errorf("joining a session keyring: %w", err)
		}
	}
	if !c.Users || c.NoFilter {
		return nil
	}
	const (
		number, argument = 0, 16 // struct seccomp_data
		refuse           = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	give := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{
		load(number), equal(unix.SYS_IO_URING_SETUP, 3, 0), equal(unix.SYS_SOCKET, 0, 3),
		load(argument), equal(unix.AF_VSOCK, 0, 1), give(refuse), give(unix.SECCOMP_RET_ALLOW),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
