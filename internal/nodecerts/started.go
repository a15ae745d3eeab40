// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ticks are how many the kernel counts in a second for processes to see (proc_pid_stat(5), USER_HZ).
const ticks = 100

// KubeletStarted tells since when the kubelet of this machine runs, and whether one does.
func KubeletStarted() (time.Time, bool) { return started("/proc", "kubelet") }

// started is about the oldest process of a name: another one may run in a pod.
func started(proc, name string) (at time.Time, ok bool) {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}, false
	}
	now := time.Now()
	paths, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	if err != nil {
		return time.Time{}, false
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil { // it has ended meanwhile
			continue
		}
		// The name may hold anything; what follows its last parenthesis may not.
		open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
		if open < 0 || end < open || string(raw[open+1:end]) != name {
			continue
		}
		const starttime = 22 - 3 // the fields after the name begin with the third
		fields := strings.Fields(string(raw[end+1:]))
		if len(fields) <= starttime || fields[0] == "Z" {
			continue
		}
		began, err := strconv.ParseInt(fields[starttime], 10, 64)
		if err != nil {
			continue
		}
		age := time.Duration(up.Nano()) - time.Duration(began)*(time.Second/ticks)
		if since := now.Add(-age); !ok || since.Before(at) {
			at, ok = since, true
		}
	}
	return at, ok
}
