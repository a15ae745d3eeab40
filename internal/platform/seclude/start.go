// SPDX-License-Identifier: Apache-2.0

package seclude

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/userns"
)

// Start starts a program as the user and the group with an id, in a view. Only root can.
func Start(cmd *exec.Cmd, id uint32, view View) error {
	done := make(chan error, 1)
	go host.OnThread(func() { done <- StartHere(cmd, id, view) }) // the thread ends with what was done to it
	return <-done
}

// Try reports why this host cannot give programs a view, nil if it can.
func Try() error {
	done := make(chan error, 1)
	go host.OnThread(func() { done <- prepare(View{}) })
	return <-done
}

// StartHere is Start on a thread that its caller is locked to and does nothing else on: it must end with what is done
// to it.
func StartHere(cmd *exec.Cmd, id uint32, view View) error {
	if id == 0 {
		return errors.New("a program that sees a part of the host must not run as root")
	}
	if err := prepare(view); err != nil {
		return err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id} // and no other groups
	return cmd.Start()
}

// prepare does to the calling thread what is done to what it starts.
func prepare(view View) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("taking a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if view.OwnNetwork {
		if err := ownNetwork(); err != nil {
			return err
		}
	}
	if err := view.enter(); err != nil {
		return err
	}
	if err := userns.Confine(); err != nil {
		return err
	}
	return renounce()
}

// renounce has what this thread starts never have a capability again, whatever program it becomes. The thread keeps its
// own: it has to change its user.
func renounce() error {
	for capability := range uintptr(unix.CAP_LAST_CAP + 1) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: this kernel does not have the capability
			return fmt.Errorf("giving up capability %d: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("reading capabilities: %w", err)
	}
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("giving up inheritable capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	return nil
}
