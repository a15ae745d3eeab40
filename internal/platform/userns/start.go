// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// keepCapabilities is SECBIT_NO_SETUID_FIXUP (capabilities(7)): a thread that changes its user keeps what it may do.
const keepCapabilities = 1 << 2

// Start starts a program as root of a new user namespace and of new namespaces that belong to that one: all of flags,
// and one of mounts. Prepare is called before, in a mount namespace that the new one is a copy of and that nobody else
// sees: what it mounts is locked for the program, which can neither take it away nor change its flags
// (mount_namespaces(7)).
//
// The namespace is owned by the first of its ids and not by root, so that the kernel counts what its processes use for
// that one. Without ids of its own the program stays in the caller's user namespace, and nothing is locked.
func Start(cmd *exec.Cmd, ids IDs, flags uintptr, prepare func() error) error {
	done := make(chan error, 1)
	go host.OnThread(func() { done <- start(cmd, ids, flags, prepare) }) // the thread ends with what was done to it
	return <-done
}

func start(cmd *exec.Cmd, ids IDs, flags uintptr, prepare func() error) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("taking a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := prepare(); err != nil {
		return err
	}
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS | flags
	if !ids.Own() {
		return cmd.Start()
	}
	if err := become(ids); err != nil {
		return fmt.Errorf("becoming user %d: %w", ids.First, err)
	}
	// The network namespace comes when the ids are known: files of the kernel's below /proc/net belong to whoever is root
	// of its user namespace as it is made, or to the host's root where nobody is yet (nf_conntrack_standalone.c).
	cmd.SysProcAttr.Unshareflags = flags & unix.CLONE_NEWNET
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | cmd.SysProcAttr.Cloneflags&^unix.CLONE_NEWNET
	cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = ids.mapping(), ids.mapping()
	cmd.SysProcAttr.GidMappingsEnableSetgroups = true
	cmd.SysProcAttr.Credential = &syscall.Credential{}
	return cmd.Start()
}

// become changes the effective user of this thread alone: the calls of package syscall would change that of all
// threads. It keeps its capabilities.
func become(ids IDs) error {
	const same = ^uintptr(0)
	for _, call := range [][4]uintptr{
		{unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, keepCapabilities},
		{unix.SYS_SETRESGID, same, uintptr(ids.First), same},
		{unix.SYS_SETRESUID, same, uintptr(ids.First), same},
	} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	return nil
}

// Enter makes the calling thread, which must end with what it does, the first user of a namespace: as its owner it may
// do there what root may, and nothing on the host.
func (i IDs) Enter() error {
	if !i.Own() {
		return errors.New("these are the host's own ids")
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leaving groups: %w", errno)
	}
	id := uintptr(i.First)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, id, id, id); errno != 0 {
		return fmt.Errorf("becoming group %d: %w", i.First, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); errno != 0 {
		return fmt.Errorf("becoming user %d: %w", i.First, errno)
	}
	return nil
}
