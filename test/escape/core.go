// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func coreAttacks() []attack {
	return []attack{
		{
			"core-dump", "crashes where the host's core_pattern is a program",
			"the host's program for crashes runs with the machine's data, and on the host's disk", coreDump,
		},
	}
}

func coreDump(*world) finding {
	pattern := bytes.TrimSpace(readAt(unix.AT_FDCWD, "/proc/sys/kernel/core_pattern"))
	if len(pattern) == 0 || pattern[0] != '|' && pattern[0] != '@' {
		return notHere("core_pattern is %q: the dump lies where the process was", pattern)
	}
	dir, err := os.Open("/")
	if err != nil {
		return refused("opening its root", err)
	}
	defer func() { _ = dir.Close() }()
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}) // a program is given dumps in any case
	crasher := exec.Command(self, childWord, "core-dump", "plain", stageCrash)     //nolint:noctx // the attack's time is bounded
	crasher.Env = []string{"GOTRACEBACK=crash"}
	crasher.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = crasher.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return refused("starting a process that crashes", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.CoreDump() {
		return out("the host's %s was given a dump of the machine's process", pattern)
	}
	return held("no dump was made: %v", exit)
}

// crash ends the process as a defect would.
func crash() { panic("a crash was asked for") }
