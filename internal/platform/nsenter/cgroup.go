// SPDX-License-Identifier: Apache-2.0

package nsenter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// joinCgroups moves the calling thread into the control groups of a process, so that what it starts is counted and
// limited as the machine is. On version 2 only whole processes can be moved, so the caller's goes there and is brought
// back by leave.
//
// A group that cannot be joined does not keep anybody from entering a machine, least of all one that is being looked at
// because it is in trouble: then the program is in the caller's group.
func joinCgroups(pid int) (leave func()) {
	leave = func() {}
	groups, err := host.ReadCgroups()
	if err != nil {
		return leave
	}
	own, err := membership("/proc/thread-self/cgroup")
	if err != nil {
		return leave
	}
	target, err := membership(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return leave
	}
	for _, h := range groups.Hierarchies {
		from, to := find(own, h), find(target, h)
		if from == "" || to == "" || from == to {
			continue
		}
		if !h.Unified {
			_ = put(filepath.Join(h.MountPoint, to, "tasks"), unix.Gettid())
			continue
		}
		// Opened now: a process inside the machine's control group namespace may not move processes out of it.
		back, err := os.OpenFile(filepath.Join(h.MountPoint, from, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		if put(filepath.Join(h.MountPoint, to, "cgroup.procs"), os.Getpid()) != nil {
			_ = back.Close()
			continue
		}
		leave = func() {
			// 0 is the writer, whatever its number is in the namespace it is in now.
			_, _ = back.WriteString("0")
			_ = back.Close()
		}
	}
	return leave
}

// group is a line of /proc/PID/cgroup: controllers, none for version 2, and the path (cgroups(7)).
type group struct {
	controllers []string
	path        string
}

func membership(file string) ([]group, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading control groups: %w", err)
	}
	var groups []group
	for text := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSuffix(text, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		g := group{path: parts[2]}
		if parts[1] != "" {
			g.controllers = strings.Split(parts[1], ",")
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// find is the path of the group in one hierarchy.
func find(groups []group, h host.Hierarchy) string {
	for _, g := range groups {
		if h.Unified && len(g.controllers) == 0 {
			return g.path
		}
		if !h.Unified && len(g.controllers) > 0 && slices.ContainsFunc(g.controllers, func(c string) bool { return slices.Contains(h.Options, c) }) {
			return g.path
		}
	}
	return ""
}

func put(file string, id int) error {
	return os.WriteFile(file, []byte(strconv.Itoa(id)), 0)
}
