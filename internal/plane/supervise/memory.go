// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/memorylimit"
	"muster.dev/muster/internal/platform/process"
	"muster.dev/muster/internal/platform/statedir"
)

// MemoryGroup holds a process to an amount of memory, in bytes (package memorylimit).
type MemoryGroup interface {
	// Renew prepares it for a process that is about to start.
	Renew(limit int64) error
	// Start starts a process in it by begin, on a thread that ends afterwards.
	Start(cmd *exec.Cmd, begin func(*exec.Cmd) error) error
	// Hold sets the limit under a process that runs. If more is in use, the error is a *memorylimit.InUse.
	Hold(limit int64) error
	// Take moves a process that runs into it.
	Take(pid int) error
	// Report is about the process that was started last.
	Report() (memorylimit.Report, error)
}

// MemoryGroups returns a function that finds the control group which holds a process to the memory of its spec.
func MemoryGroups(dir statedir.Dir) func(component.Spec) (MemoryGroup, error) {
	return func(spec component.Spec) (MemoryGroup, error) {
		controller, err := memorylimit.Open()
		if err != nil {
			return nil, err
		}
		return controller.Process(dir, spec.Process()), nil
	}
}

// findGroup finds the member's group, if the spec has a limit. The problem says in one line why there is none.
func (m *member) findGroup(spec component.Spec) (problem string) {
	find := m.supervisor.cfg.Memory
	if spec.Memory == 0 || find == nil || m.group != nil {
		return ""
	}
	group, err := find(spec)
	if err != nil {
		return err.Error()
	}
	m.group = group
	return ""
}

// follow puts the process under another limit each time that another one is wanted, until the context ends.
func (m *member) follow(ctx context.Context, h *process.Handle) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.renewed:
			m.hold(h)
		}
	}
}

// launch starts the process in its group. Where that cannot be it runs without a limit, and its status says so.
func (m *member) launch(restarts int) (*exec.Cmd, error) {
	state := m.supervisor.cfg.State
	as, err := m.supervisor.ownOf(m.spec())
	if err != nil {
		return nil, err
	}
	m.set(func(s *runner.Status) { s.User = as.user() })
	m.memory.Lock()
	defer m.memory.Unlock()
	spec := m.spec()
	if problem := m.findGroup(spec); problem != "" {
		m.set(func(s *runner.Status) { s.Memory.Problem = problem })
	}
	if m.group == nil || spec.Memory == 0 {
		m.set(func(s *runner.Status) { s.Memory.Limit = 0 })
		return start(state, spec, restarts, as, onThread)
	}
	limited := m.group.Renew(spec.Memory)
	m.seen = m.endedSoFar() // 0 but for a group that could not be made anew
	_, inUse := errors.AsType[*memorylimit.InUse](limited)
	if limited == nil || inUse {
		inGroup := func(cmd *exec.Cmd, begin starter) error { return m.group.Start(cmd, begin) }
		if cmd, err := start(state, spec, restarts, as, inGroup); err == nil {
			m.setLimit(limited)
			return cmd, nil
		}
	}
	cmd, err := start(state, spec, restarts, as, onThread)
	if err != nil {
		return nil, err
	}
	if limited == nil || inUse { // no process can be started in it, as in version 2 before Linux 5.7
		limited = errors.Join(m.group.Take(cmd.Process.Pid), limited)
	}
	m.setLimit(limited)
	return cmd, nil
}

// hold puts a process that was taken over under the memory limit of its spec. A process that an earlier Muster started
// without a group is moved into a group.
func (m *member) hold(h *process.Handle) {
	m.memory.Lock()
	defer m.memory.Unlock()
	spec := m.spec()
	if problem := m.findGroup(spec); problem != "" {
		m.set(func(s *runner.Status) { s.Memory.Problem = problem })
	}
	if m.group == nil || h.Ended() {
		return
	}
	if spec.Memory == 0 { // it had one, and stays in its group
		m.setLimit(m.group.Hold(math.MaxInt64))
		return
	}
	err := m.group.Hold(spec.Memory)
	if _, inUse := errors.AsType[*memorylimit.InUse](err); err == nil || inUse {
		err = errors.Join(m.group.Take(h.PID), err)
	}
	m.seen = m.endedSoFar()
	m.setLimit(err)
}

// setLimit says in the status what the attempt to have the limit of the spec in force has led to.
func (m *member) setLimit(err error) {
	limit, problem := m.spec().Memory, ""
	if err != nil {
		limit, problem = 0, strings.ReplaceAll(err.Error(), "\n", "; ")
		m.supervisor.cfg.Log.Warn("the memory limit of a component is not in force", "component", m.spec().Process(), "error", err)
	}
	if inUse, ok := errors.AsType[*memorylimit.InUse](err); ok {
		limit = inUse.Limit
	}
	m.set(func(s *runner.Status) { s.Memory.Limit, s.Memory.Problem = limit, problem })
}

// endedSoFar is how many processes of the group the kernel has ended at its limit.
func (m *member) endedSoFar() int {
	report, err := m.group.Report()
	if err != nil {
		return 0
	}
	return report.Ended
}

// noteEnd reports whether the process ended at its limit, and says so in the status. A process that ended while no
// supervisor ran is noted by the next one.
func (m *member) noteEnd() (reason string, atLimit bool) {
	m.memory.Lock()
	defer m.memory.Unlock()
	if m.group == nil || m.spec().Memory == 0 {
		return "", false
	}
	report, err := m.group.Report()
	if err != nil || report.Ended <= m.seen {
		return "", false
	}
	_ = m.group.Renew(m.spec().Memory) // a supervisor of a moment later finds nothing to note
	m.seen = m.endedSoFar()
	end := runner.MemoryEnd{At: time.Now(), Limit: report.Limit, Used: report.Peak}
	m.set(func(s *runner.Status) { s.Memory.Ended, s.Memory.Last = s.Memory.Ended+1, end })
	reason = fmt.Sprintf("the kernel ended it at its memory limit: it used %d MiB, and the limit is %d MiB", end.Used>>20, end.Limit>>20)
	m.supervisor.cfg.Log.Warn("the kernel ended a component at its memory limit", "component", m.spec().Process(), "limit", end.Limit, "used", end.Used)
	return reason, true
}
