// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Needs of a story: it mostly waits, so a processor serves two; the local machines of one hold up to 60 inotify
// instances; its control planes and nodes take up to 2 GiB.
const (
	storiesPerProcessor = 2
	inotifyPerStory     = 60
	memoryPerStory      = 2 << 30
)

// slots is how many stories run at the same time on a host, and what allows no more.
func slots(processors, inotify int, memory int64) (n int, limit string) {
	n, limit = storiesPerProcessor*processors, fmt.Sprintf("%d processors", processors)
	if m := inotify / inotifyPerStory; m < n {
		n, limit = m, fmt.Sprintf("fs.inotify.max_user_instances %d", inotify)
	}
	if m := int(memory / memoryPerStory); m < n {
		n, limit = m, fmt.Sprintf("%d MiB of available memory", memory>>20)
	}
	return max(n, 1), limit
}

// slotsHere asks the host.
func slotsHere() (n int, limit string, err error) {
	raw, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return 0, "", fmt.Errorf("asking how many stories can run at once: %w", err)
	}
	inotify, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, "", fmt.Errorf("asking how many stories can run at once: %w", err)
	}
	raw, err = os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, "", fmt.Errorf("asking how many stories can run at once: %w", err)
	}
	_, rest, _ := strings.Cut(string(raw), "MemAvailable:")
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0, "", fmt.Errorf("asking how many stories can run at once: /proc/meminfo has no MemAvailable")
	}
	memory, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("asking how many stories can run at once: %w", err)
	}
	n, limit = slots(runtime.NumCPU(), inotify, memory<<10)
	return n, limit, nil
}
