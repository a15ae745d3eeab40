// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster.dev/muster/test/plane"
)

// ticked is how much of the machine's CPUs everybody has used so far, and the benchmark of that.
type ticked struct {
	at        time.Time
	all, ours time.Duration
}

// tick reads it. Processes of the benchmark that live are named. Processes that ended count for their parent, which is
// this process.
func tick(alive ...*service) (ticked, error) {
	t := ticked{at: time.Now()}
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, fmt.Errorf("reading what all processes use: %w", err)
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	fields := strings.Fields(first) // cpu, user, nice, system, ... in 1/100 s (proc(5))
	if len(fields) < 4 {
		return t, fmt.Errorf("reading what all processes use: %q", first)
	}
	for _, field := range fields[1:4] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return t, fmt.Errorf("reading what all processes use: %w", err)
		}
		t.all += time.Duration(n) * 10 * time.Millisecond
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return t, fmt.Errorf("reading what the benchmark uses: %w", err)
		}
		t.ours += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, s := range alive {
		u, err := plane.UsageOf(s.pid())
		if err != nil {
			return t, err
		}
		t.ours += u.CPU
	}
	return t, nil
}

// since is the share of the machine's CPUs that others used in between, in percent.
func (t ticked) since(before ticked) float64 {
	others := (t.all - before.all) - (t.ours - before.ours)
	// The kernel samples the one and counts the other exactly, so the difference is rough.
	return min(100, max(0, 100*others.Seconds()/(t.at.Sub(before.at).Seconds()*float64(runtime.NumCPU()))))
}
