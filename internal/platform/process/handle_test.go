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

	other := make(chan error, 1)
	go func() { other <- handle.Wait(t.Context()) }() // is not disturbed by one that gives up

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := handle.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a process that runs: %v, want %v", err, context.DeadlineExceeded)
	}
	if handle.Ended() {
		t.Error("a process that runs has ended")
	}
	select {
	case err := <-other:
		t.Errorf("the other waited no longer: %v", err)
	default:
	}
	if err := handle.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-other; err != nil {
		t.Error(err)
	}
	if !handle.Ended() {
		t.Error("a process that was killed has not ended")
	}
	if err := handle.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if err := handle.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("signalling a process that has ended: %v", err)
	}
}
