// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has cost so far.
type Usage struct {
	CPU time.Duration // in user and kernel mode, all threads
	// Peak and Resident memory in bytes.
	Peak, Resident int64
}

// Usage reads what the process has cost so far.
func (p *Process) Usage() (Usage, error) { return UsageOf(p.PID) }

// UsageOf reads it for any process (proc(5): fields 14 and 15 of stat are ticks of 1/100 s; VmHWM and VmRSS of status).
func UsageOf(pid int) (Usage, error) {
	root := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(root + "/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("reading what process %d costs: %w", pid, err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from field 3
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("reading what process %d costs: stat has %d fields", pid, len(fields))
	}
	var u Usage
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("reading what process %d costs: %w", pid, err)
		}
		u.CPU += time.Duration(ticks) * 10 * time.Millisecond
	}
	status, err := os.ReadFile(root + "/status")
	if err != nil {
		return Usage{}, fmt.Errorf("reading what process %d costs: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		into := map[string]*int64{"VmHWM": &u.Peak, "VmRSS": &u.Resident}[key]
		if into == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("reading what process %d costs: %w", pid, err)
		}
		*into = kib << 10
	}
	return u, nil
}

// ForgetPeak makes the peak begin anew, from what is resident now (proc(5): 5 written to clear_refs).
func (p *Process) ForgetPeak() error {
	if err := os.WriteFile("/proc/"+strconv.Itoa(p.PID)+"/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("forgetting the peak of process %d: %w", p.PID, err)
	}
	return nil
}
