// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestIsInit(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   bool
	}{
		"a machine":              {"Name:\tmuster\nState:\tS (sleeping)\nNSpid:\t4711\t1\n", true},
		"of this namespace":      {"State:\tS (sleeping)\nNSpid:\t4711\n", false},
		"on a machine":           {"State:\tS (sleeping)\nNSpid:\t4711\t17\n", false},
		"a container's first":    {"State:\tS (sleeping)\nNSpid:\t4711\t17\t1\n", false},
		"a zombie":               {"State:\tZ (zombie)\nNSpid:\t4711\t1\n", false},
		"a kernel without NSpid": {"State:\tS (sleeping)\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isInit(test.status); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

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

func TestFacts(t *testing.T) {
	if memory, err := Memory(); err != nil || memory < 64<<20 {
		t.Errorf("memory: %d, %v", memory, err)
	}
	if kernel, err := Kernel(); err != nil || kernel == "" {
		t.Errorf("kernel: %q, %v", kernel, err)
	}
	if _, err := Capable(24); err != nil {
		t.Errorf("capability: %v", err)
	}
	if CPUs() < 1 {
		t.Errorf("%d processors", CPUs())
	}
}
