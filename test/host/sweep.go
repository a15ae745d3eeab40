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

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/process"
)

const (
	// Environment marks the first process of a host: with who started it, what it is of, and its name:
	// 4711.815.it/worker.
	Environment = "MUSTER_TEST_HOST"
	// groupsOf is where the control groups of all hosts are, by who started them.
	groupsOf = "/muster-test-hosts"
)

// self names the process that runs this, unlike any other before or after.
func self() (string, error) {
	stat, err := process.ReadStat("/proc/self")
	if err != nil {
		return "", fmt.Errorf("looking at this process: %w", err)
	}
	return fmt.Sprintf("%d.%d", os.Getpid(), stat.Ticks), nil
}

// alive reports whether a process that named itself still runs, whatever follows its name.
func alive(name string) bool {
	pid, rest, _ := strings.Cut(name, ".")
	if _, err := strconv.Atoi(pid); err != nil {
		return false
	}
	started, _, _ := strings.Cut(rest, ".")
	stat, err := process.ReadStat(filepath.Join("/proc", pid))
	return err == nil && strconv.FormatInt(stat.Ticks, 10) == started
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
		mark, ok := first.Environment[Environment]
		owner, _, _ := strings.Cut(mark, "/")
		return ok && first.UID == os.Geteuid() && !alive(owner)
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
