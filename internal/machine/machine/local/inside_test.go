// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/userns"
)

// The first process of a machine that boots has the host's root directory for a moment, in a mount namespace of its
// own. Nothing is done there.
func TestNothingIsDoneBeforeAMachineHasItsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test makes a mount namespace: run it as root")
	}
	booting := exec.CommandContext(t.Context(), "sleep", "60")
	booting.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if err := booting.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = booting.Process.Kill()
		_ = booting.Wait()
	}()
	held, err := unix.PidfdOpen(booting.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(held) }()
	entered := false
	done := make(chan error, 1)
	go host.OnThread(func() {
		done <- enter(held, booting.Process.Pid, userns.IDs{}, func() error { entered = true; return nil })
	})
	if err := <-done; !errors.Is(err, ErrNotRunning) || entered {
		t.Errorf("entered: %v, %v", entered, err)
	}
}
