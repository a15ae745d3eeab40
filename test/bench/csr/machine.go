// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/test/plane"
)

// share is how much of the processors' time nothing ran, and something that has nothing to do with the benchmark did. A
// rate is the system's own only if both are small: what waits shows in the first, and a machine that others use in the
// second.
type share struct{ idle, others float64 }

// moment is how the processors' time was spent until then.
type moment struct{ all, idle, ours time.Duration }

// now reads a moment.
func (m *meter) now() (moment, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return moment{}, fmt.Errorf("reading what the machine does: %w", err)
	}
	at, err := parseStat(string(raw))
	if err != nil {
		return moment{}, err
	}
	for _, process := range []int{m.controller.PID, m.plane.APIServer.PID, m.plane.Etcd.PID, os.Getpid()} {
		u, err := plane.UsageOf(process)
		if err != nil {
			return moment{}, err
		}
		at.ours += u.CPU
	}
	return at, nil
}

// parseStat reads the first line of /proc/stat (proc(5)): ticks of 1/100 s, idle ones and those that waited for a disk
// in the fourth and fifth place, and up to the eighth all there are.
func parseStat(stat string) (at moment, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return at, errors.New("reading what the machine does: /proc/stat begins otherwise than expected")
	}
	for n, f := range fields[1:9] {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return at, fmt.Errorf("reading what the machine does: %w", err)
		}
		d := time.Duration(ticks) * 10 * time.Millisecond
		at.all += d
		if n == 3 || n == 4 {
			at.idle += d
		}
	}
	return at, nil
}

func (m moment) since(before moment) share {
	all := float64(m.all - before.all)
	if all <= 0 {
		return share{}
	}
	idle := float64(m.idle-before.idle) / all
	return share{idle: idle, others: max(0, 1-idle-float64(m.ours-before.ours)/all)}
}
