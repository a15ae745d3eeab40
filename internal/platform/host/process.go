// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster.dev/muster/internal/platform/process"
)

// Init is a process that is number one of a process namespace directly below the caller's: a machine.
type Init struct {
	PID         int
	UID         int // of the host
	Environment map[string]string
}

// Inits finds the processes that are number one of a namespace directly below the caller's and for which match is true.
// A process in a pod may have any environment it likes, but cannot be one of these: a container's first process is two
// namespaces down. Other users of the host can make some, so who asks must look at the user: root sees all, and others
// their own.
func Inits(match func(Init) bool) ([]Init, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []Init
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process that cannot be read belongs to somebody else, or has just ended.
		if p, ok := InitAt(pid); ok && match(p) {
			found = append(found, p)
		}
	}
	return found, nil
}

// InitAt reads the process that has the number, if it is one that Inits finds.
func InitAt(pid int) (Init, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	var stat syscall.Stat_t
	if err := syscall.Stat(dir, &stat); err != nil {
		return Init{}, false
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil || !isInit(string(status)) {
		return Init{}, false
	}
	running, err := process.Read(dir, time.Now().Add(execPatience))
	if err != nil {
		return Init{}, false
	}
	found := Init{PID: pid, UID: int(stat.Uid), Environment: map[string]string{}}
	for variable := range strings.SplitSeq(string(running.Environment), "\x00") {
		if name, value, ok := strings.Cut(variable, "="); ok {
			found.Environment[name] = value
		}
	}
	return found, true
}

// execPatience is how long a machine between two programs is waited for: one taken for stopped then would be booted
// twice.
const execPatience = 50 * time.Millisecond

// isInit reports whether a status file is of process 1 of a namespace directly below the reader's. NSpid has a number
// for each namespace, from the reader's inwards: here two, and the inner number is 1.
func isInit(status string) bool {
	for line := range strings.Lines(status) {
		if name, value, _ := strings.Cut(line, ":"); name == "NSpid" {
			numbers := strings.Fields(value)
			return len(numbers) == 2 && numbers[1] == "1"
		}
	}
	return false
}
