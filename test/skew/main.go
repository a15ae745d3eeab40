// SPDX-License-Identifier: Apache-2.0

//go:build amd64

// Skew runs a command whose clock on the wall is wrong:
//
//	skew +2h date
//
// Linux has a namespace for monotonic clocks and none for the time of day (time_namespaces(7)), so another process
// answers the command's questions for it:
//
//   - the command, its threads and its children are traced (ptrace(2)), by a process that is nobody's child and ends with the last of them;
//   - whenever one executes a program, the kernel's own code for clocks (vdso(7)) is hidden from it, so that it makes system calls;
//   - a filter (seccomp(2)) stops those that ask for the time of day, and no others; the tracer answers them.
//
// The command takes skew's own place: its process ID, its files, its signals and its exit status are what they would be
// without. Programs need no change, and may be static. Should the tracer die, the kernel kills them all: none goes on
// with the right time.
//
// Monotonic clocks, timers, and the times of files are as they were. A wait until a moment by the clock on the wall
// (FUTEX_CLOCK_REALTIME, TIMER_ABSTIME) ends by the right clock; Go's runtime makes none.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Exit statuses of skew when the command did not run. The numbers are env(1)'s.
const (
	exitFailed   = 125
	exitNotFound = 127
)

func main() {
	err := run(os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "skew:", err)
	if errors.Is(err, exec.ErrNotFound) {
		os.Exit(exitNotFound)
	}
	os.Exit(exitFailed)
}

func run(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case roleHerald:
			return herald(args[1:])
		case roleTracer:
			return trace(args[1:])
		}
	}
	if len(args) < 2 {
		return errors.New("usage: skew OFFSET COMMAND [ARGUMENT...], as in: skew -90m date")
	}
	offset, err := time.ParseDuration(args[0])
	if err != nil {
		return fmt.Errorf("OFFSET must be like +2h or -90s: %w", err)
	}
	return become(offset, args[1:])
}
