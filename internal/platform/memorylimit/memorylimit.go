// SPDX-License-Identifier: Apache-2.0

package memorylimit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// removePatience is how long the kernel may take to let go of a group whose processes have ended.
const removePatience = 5 * time.Second

// Controller is the memory controller of this host.
type Controller struct{ groups host.Cgroups }

// Open finds the memory controller. The error says in one line why this process cannot use it; that groups can be made
// shows when one is.
func Open() (Controller, error) {
	if os.Geteuid() != 0 {
		return Controller{}, errors.New("that takes root, and muster does not run as root")
	}
	all, err := host.ReadCgroups()
	if err != nil {
		return Controller{}, err
	}
	groups, err := all.With("memory")
	if err != nil {
		return Controller{}, err
	}
	if len(groups.Hierarchies) == 0 {
		return Controller{}, errors.New("this host has no memory controller of control groups: mount it, or boot the kernel with cgroup_enable=memory")
	}
	return Controller{groups}, nil
}

// Group is the group at name ("/a/b"), which need not exist.
func (c Controller) Group(name string) Group {
	h := c.groups.Hierarchies[0]
	return Group{groups: c.groups, name: name, dir: filepath.Join(h.MountPoint, name), unified: h.Unified}
}

// Group is a control group that bounds memory.
type Group struct {
	groups  host.Cgroups
	name    string
	dir     string
	unified bool
}

// InUse says that the limit of a group was not lowered since its processes use more. All figures are bytes.
type InUse struct {
	Asked int64 // the limit that was asked for
	Used  int64
	Limit int64 // the limit that is in force
}

func (e *InUse) Error() string {
	return fmt.Sprintf("a limit of %d MiB cannot take effect while %d MiB are in use; the limit stays %d MiB", e.Asked>>20, e.Used>>20, e.Limit>>20)
}

// Hold makes the group if it does not exist, and holds its processes to so many bytes. If they use more, the error is
// an *InUse.
func (g Group) Hold(limit int64) error {
	if err := g.groups.Create(g.name); err != nil {
		return err
	}
	before, _ := g.Report()
	err := g.groups.Limit(g.name, host.Limits{Memory: limit})
	if err == nil && !g.unified && limit < before.Limit { // the most that was used is of the limit before (Report)
		for _, most := range []string{"memory.max_usage_in_bytes", "memory.memsw.max_usage_in_bytes"} {
			_ = os.WriteFile(filepath.Join(g.dir, most), []byte("0"), 0)
		}
	}
	if !errors.Is(err, host.ErrInUse) {
		return err
	}
	report, err := g.Report()
	if err != nil {
		return err
	}
	return &InUse{Asked: limit, Used: report.Used, Limit: report.Limit}
}

// Renew makes the group anew for a program that is about to start, so that Report is about that program alone. A group
// that another process is still in is not made anew.
func (g Group) Renew(limit int64) error {
	_ = g.groups.Remove(g.name, removePatience/10)
	return g.Hold(limit)
}

// Start starts a program in the group, so that all of its memory is counted: by begin, on a thread that ends
// afterwards. cmd is not to be used again if that fails.
func (g Group) Start(cmd *exec.Cmd, begin func(*exec.Cmd) error) error {
	done := make(chan error, 1)
	if g.unified {
		dir, err := os.Open(g.dir)
		if err != nil {
			return fmt.Errorf("opening control group: %w", err)
		}
		defer func() { _ = dir.Close() }()
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
		go host.OnThread(func() { done <- begin(cmd) })
		return <-done
	}
	// A process begins in the group of the thread that made it. The thread ends with the goroutine.
	go host.OnThread(func() {
		if err := os.WriteFile(filepath.Join(g.dir, "tasks"), []byte(strconv.Itoa(unix.Gettid())), 0); err != nil {
			done <- fmt.Errorf("entering control group: %w", err)
			return
		}
		done <- begin(cmd)
	})
	return <-done
}

// Take moves a process that runs into the group, and does nothing if it is in the group already. Memory that the
// process has by then is not counted.
func (g Group) Take(pid int) error { return g.groups.Enter(g.name, pid) }

// Remove removes the group at name and all below it. Their processes have ended.
func (c Controller) Remove(name string) error { return c.groups.Remove(name, removePatience) }
