// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Threads reports, of a process whose directory is root, as /proc/17, whether the process has been killed or has
// exited, and which users its threads are that have not ended. A thread that waits for a file system whose program does
// not answer (FUSE) cannot be killed: until it ends, the process keeps its locks, sockets and ports, and the first
// thread may be a zombie meanwhile. A process of which no thread is left has no users.
func Threads(root string) (ending bool, users []uint32, err error) {
	first, err := readStatus(root)
	if err != nil {
		return false, nil, err
	}
	threads, err := os.ReadDir(filepath.Join(root, "task"))
	if err != nil {
		return false, nil, err
	}
	for _, thread := range threads {
		s, err := readStatus(filepath.Join(root, "task", thread.Name()))
		if err == nil && !s.dead && !slices.Contains(users, s.user) { // a thread that cannot be read has just ended
			users = append(users, s.user)
		}
	}
	return first.dead || first.killed, users, nil
}

// status is what a status file says about one thread.
type status struct {
	dead, killed bool
	user         uint32 // the effective one
}

func readStatus(root string) (status, error) {
	raw, err := os.ReadFile(filepath.Join(root, "status"))
	if err != nil {
		return status{}, err
	}
	s, err := parseStatus(string(raw))
	if err != nil {
		return status{}, fmt.Errorf("reading %s: %w", filepath.Join(root, "status"), err)
	}
	return s, nil
}

func parseStatus(raw string) (s status, err error) {
	const killed = 1 << (unix.SIGKILL - 1)
	named := false
	for line := range strings.Lines(raw) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch {
		case name == "State" && len(fields) > 0:
			s.dead = fields[0] == "Z" || fields[0] == "X"
		case name == "Uid" && len(fields) > 1:
			user, err := strconv.ParseUint(fields[1], 10, 32)
			if err != nil {
				return status{}, fmt.Errorf("user: %w", err)
			}
			s.user, named = uint32(user), true
		case (name == "SigPnd" || name == "ShdPnd") && len(fields) > 0: // the kernel sends SIGKILL to each thread of a process that exits, too
			pending, err := strconv.ParseUint(fields[0], 16, 64)
			if err != nil {
				return status{}, fmt.Errorf("signals: %w", err)
			}
			s.killed = s.killed || pending&killed != 0
		}
	}
	if !named {
		return status{}, fmt.Errorf("it names no user")
	}
	return s, nil
}
