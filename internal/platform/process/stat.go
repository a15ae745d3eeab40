// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Stat is what the kernel tells of a process: proc_pid_stat(5), whose numbers of fields the comments give.
type Stat struct {
	Name    string // field 2: of its program, at most 15 bytes, whatever the process calls itself
	State   byte   // field 3: 'Z' is one that has ended and is not waited for
	Parent  int    // field 4; 0 is none in the reader's namespace
	Session int    // field 6
	Ticks   int64  // field 22: when it started, 1/100 s since boot, the same each time it is read

	kernel     bool   // of field 9: it is a thread of the kernel
	threads    int    // field 20
	code       string // field 26: where its code begins, 0 until it is loaded
	begin, end string // fields 50 and 51: where its environment does
}

// tick is what the kernel counts in for processes to see: USER_HZ is 100 wherever Go runs.
const tick = 10 * time.Millisecond

// kernelThread is PF_KTHREAD of include/linux/sched.h.
const kernelThread = 0x200000

// ReadStat reads the stat of the process whose directory is root, as /proc/17.
func ReadStat(root string) (Stat, error) {
	path := filepath.Join(root, "stat")
	raw, err := os.ReadFile(path)
	if err != nil {
		return Stat{}, err
	}
	s, err := parseStat(raw)
	if err != nil {
		return Stat{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return s, nil
}

func parseStat(raw []byte) (Stat, error) {
	// The name may hold anything; the text after its last parenthesis may not.
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if open < 0 || end < open {
		return Stat{}, errors.New("it names no program")
	}
	fields := strings.Fields(string(raw[end+1:])) // from field 3
	if len(fields) < 49 {
		return Stat{}, fmt.Errorf("it has %d fields, not 51 and more", len(fields)+2)
	}
	parent, err := strconv.Atoi(fields[4-3])
	if err != nil {
		return Stat{}, fmt.Errorf("parent: %w", err)
	}
	session, err := strconv.Atoi(fields[6-3])
	if err != nil {
		return Stat{}, fmt.Errorf("session: %w", err)
	}
	flags, err := strconv.ParseUint(fields[9-3], 10, 32)
	if err != nil {
		return Stat{}, fmt.Errorf("flags: %w", err)
	}
	threads, err := strconv.Atoi(fields[20-3])
	if err != nil {
		return Stat{}, fmt.Errorf("threads: %w", err)
	}
	ticks, err := strconv.ParseInt(fields[22-3], 10, 64)
	if err != nil {
		return Stat{}, fmt.Errorf("start: %w", err)
	}
	return Stat{
		Name: string(raw[open+1 : end]), State: fields[0][0], Parent: parent, Session: session, Ticks: ticks,
		kernel: flags&kernelThread != 0, threads: threads, code: fields[26-3], begin: fields[50-3], end: fields[51-3],
	}, nil
}

// Started is when the process began, by this machine's clock.
func (s Stat) Started() time.Time {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{} // every kernel since 2.6.39 has that clock
	}
	return time.Now().Add(time.Duration(s.Ticks)*tick - time.Duration(up.Nano()))
}
