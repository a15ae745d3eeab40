// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestHandle(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	handle, err := Hold(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := handle.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a process that runs: %v, want %v", err, context.DeadlineExceeded)
	}
	if err := handle.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := handle.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if err := handle.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("signalling a process that has ended: %v", err)
	}
}
