// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"muster.dev/muster/internal/host"
	"muster.dev/muster/internal/process"
)

const (
	// environment marks the first process of a host: with who started it, and its name.
	environment = "MUSTER_TEST_HOST"
	// groupsOf is where the control groups of all hosts are, by who started them.
	groupsOf = "/muster-test-hosts"
)

// self names the process that runs this, unlike any other before or after.
func self() (string, error) {
	started, err := startTime(os.Getpid())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%s", os.Getpid(), started), nil
}

// startTime is when a process started, in ticks since the machine did (proc_pid_stat(5), field 22).
func startTime(pid int) (string, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", fmt.Errorf("looking at process %d: %w", pid, err)
	}
	// The second field, in parentheses, may hold anything.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("looking at process %d: its line is cut short", pid)
	}
	return fields[19], nil
}

// alive tells whether a process that named itself still runs.
func alive(name string) bool {
	number, started, _ := strings.Cut(name, ".")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	now, err := startTime(pid)
	return err == nil && now == started
}

// Sweep removes the hosts of processes that have ended, as each start of a host does.
func Sweep(ctx context.Context) error {
	groups, err := host.ReadCgroups()
	if err != nil {
		return err
	}
	return sweep(ctx, groups)
}

func sweep(ctx context.Context, groups host.Cgroups) error {
	orphans, err := host.Inits(func(first host.Init) bool {
		mark, ok := first.Environment[environment]
		owner, _, _ := strings.Cut(mark, "/")
		return ok && !alive(owner)
	})
	if err != nil {
		return err
	}
	for _, orphan := range orphans {
		if err := end(ctx, orphan.PID); err != nil {
			return err
		}
	}
	for _, hierarchy := range groups.Hierarchies {
		owners, err := os.ReadDir(filepath.Join(hierarchy.MountPoint, groupsOf))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("listing control groups of hosts: %w", err)
		}
		for _, owner := range owners {
			if !owner.IsDir() || alive(owner.Name()) {
				continue
			}
			if err := groups.Remove(groupsOf+"/"+owner.Name(), endPatience); err != nil {
				return err
			}
		}
	}
	return nil
}

// end ends a first process, and with it all others of its host.
func end(ctx context.Context, pid int) error {
	handle, err := process.Hold(pid)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer handle.Close()
	if err := handle.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	return handle.Wait(ctx)
}
