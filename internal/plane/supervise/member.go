// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/process"
)

// timing says how long is long; tests have less patience.
type timing struct {
	// The pause before a restart grows from the first to the second, and starts over for a process that ran stableAfter
	// long.
	backoffMin, backoffMax, stableAfter time.Duration
	// A process is asked often until it is ready, then now and then.
	probeStarting, probeServing time.Duration
	// A process that has not answered for this long, and for the pause of its spec besides, while everything it needs was
	// ready, hangs and is started again.
	hungAfter time.Duration
}

func defaultTiming() timing {
	return timing{
		backoffMin: 100 * time.Millisecond, backoffMax: 10 * time.Second, stableAfter: 10 * time.Second,
		probeStarting: 50 * time.Millisecond, probeServing: 2 * time.Second,
		hungAfter: 2 * time.Minute,
	}
}

// member is one process and the loop that keeps it running.
type member struct {
	supervisor *Supervisor
	wanted     atomic.Pointer[component.Spec]
	before     *member // of the same name, whose loop ends first; nil if there is none
	end        context.CancelFunc
	ended      chan struct{} // closed when its loop has ended; nil if it never began
	status     runner.Status // guarded by supervisor.mu
	removed    bool          // guarded by supervisor.mu
	outdated   bool          // its process goes on though its program was replaced; guarded by supervisor.mu
	stopping   bool          // a call of Stop ends its process, so Apply does not; guarded by supervisor.mu

	memory  sync.Mutex
	group   MemoryGroup   // nil if it has no limit
	seen    int           // of the ends at its limit that the group reports, those that are in the status
	renewed chan struct{} // another limit is wanted
}

// newMember makes a member that replaces another one, which may be nil. supervisor.mu is held.
func newMember(s *Supervisor, spec component.Spec, before *member) *member {
	if before != nil {
		before.leave()
	}
	m := &member{
		supervisor: s, before: before, renewed: make(chan struct{}, 1),
		status: runner.Status{Name: spec.Name, State: runner.Waiting, User: uint32(os.Geteuid()), Since: time.Now()}, //nolint:gosec // G115: an id
	}
	m.wanted.Store(&spec)
	m.status.Memory.Problem = m.findGroup(spec)
	return m
}

// spec is what is wanted of it now. Memory, Grace, After, KeepsProgram and View may change while its process runs.
func (m *member) spec() component.Spec { return *m.wanted.Load() }

// take makes an equal spec the wanted one. The caller wakes up the waiting ones.
func (m *member) take(spec component.Spec) {
	other := spec.Memory != m.spec().Memory
	m.wanted.Store(&spec)
	if other {
		select {
		case m.renewed <- struct{}{}:
		default: // it is about to look anyway
		}
	}
}

// leave has its loop end, which leaves the process as it is. supervisor.mu is held.
func (m *member) leave() {
	m.removed = true
	if m.end != nil {
		m.end()
	}
}

// await returns when its loop has ended, and starts no process any more.
func (m *member) await(ctx context.Context) error {
	if m.ended == nil {
		return nil
	}
	select {
	case <-m.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *member) set(change func(*runner.Status)) { m.supervisor.set(m, change) }

// run keeps the process running until the context ends.
func (m *member) run(ctx context.Context) {
	if m.before != nil {
		_ = m.before.await(context.WithoutCancel(ctx)) // its context has ended
		m.before = nil
	}
	timing := m.supervisor.timing
	pause := timing.backoffMin
	for ctx.Err() == nil {
		h, err := m.obtain(ctx)
		if ctx.Err() != nil {
			if err == nil {
				h.Close()
			}
			return
		}
		var reason string
		if err == nil {
			began := time.Now()
			reason = m.watch(ctx, h)
			h.Close()
			if time.Since(began) > timing.stableAfter {
				pause = timing.backoffMin
			}
		} else {
			reason = err.Error()
		}
		if ctx.Err() != nil {
			return
		}
		m.back(ctx, pause, reason)
		pause = min(2*pause, timing.backoffMax)
	}
}

// obtain takes over the process if one runs already, and else starts one when what it needs is ready.
func (m *member) obtain(ctx context.Context) (*process.Handle, error) {
	if h, adopted, err := m.adopt(ctx); adopted || err != nil {
		return h, err
	}
	m.noteEnd()
	for {
		after := m.spec().After
		changed, ready := m.supervisor.ready(after)
		if ready {
			return m.start()
		}
		m.set(func(s *runner.Status) { s.State, s.Message = runner.Waiting, fmt.Sprintf("for %v", after) })
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (m *member) back(ctx context.Context, pause time.Duration, reason string) {
	m.set(func(s *runner.Status) {
		s.State, s.PID, s.Started, s.Message, s.Restarts = runner.Backoff, 0, time.Time{}, reason, s.Restarts+1
	})
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// adopt takes over a process that another supervisor, mostly the one before this, has started. A process with another
// spec, or whose program was replaced, is stopped instead, unless it keeps its program. If its work is handed over it
// goes on beside the next.
func (m *member) adopt(ctx context.Context) (h *process.Handle, adopted bool, err error) {
	running, err := Find(m.supervisor.cfg.State)
	if err != nil {
		return nil, false, err
	}
	program, err := filepath.EvalSymlinks(m.spec().Path) // a link's process runs what the link points to
	if err != nil && !m.spec().KeepsProgram {
		return nil, false, fmt.Errorf("finding program of %s: %w", m.spec().Name, err)
	}
	p, ok := Leader(running, m.spec().Process(), program)
	switch {
	case m.spec().HandsOver:
		p, ok = successor(running, m.spec(), program)
	case !ok:
		p, ok = predecessor(running, m.spec().Process())
	}
	if !ok {
		return nil, false, nil
	}
	if h, err = open(p, m.supervisor.cfg.State); err != nil {
		return nil, false, nil // it has ended meanwhile, so there is nothing to take over
	}
	if p.Spec == m.spec().Hash() && m.keeps(p.Executable != program) {
		m.supervisor.cfg.Log.Info("took over a running component", "component", m.spec().Process(), "process_id", p.PID)
		spare(p.PID)
		m.set(func(s *runner.Status) {
			s.State, s.PID, s.User, s.Started, s.Restarts = runner.Starting, p.PID, p.User, p.Started, max(s.Restarts, p.restarts)
		})
		m.hold(h)
		return h, true, nil
	}
	defer h.Close()
	m.supervisor.cfg.Log.Info("replacing a component", "component", m.spec().Process(), "process_id", p.PID, "reason", "its spec or program changed")
	if err := h.Stop(ctx, m.grace()); err != nil {
		return nil, false, fmt.Errorf("stopping %s, which changed: %w", m.spec().Name, err)
	}
	return nil, false, nil
}

// keeps reports whether a process of its spec goes on, and notes whether the program of that was replaced.
func (m *member) keeps(outdated bool) bool {
	m.supervisor.mu.Lock()
	defer m.supervisor.mu.Unlock()
	m.outdated = outdated && m.spec().KeepsProgram
	return m.outdated || !outdated
}

// grace is how long the process may take to end.
func (m *member) grace() time.Duration {
	return cmp.Or(m.spec().Grace.Duration, m.supervisor.cfg.StopGrace)
}

func (m *member) start() (*process.Handle, error) {
	m.supervisor.mu.Lock()
	restarts := m.status.Restarts
	m.outdated = false
	m.supervisor.mu.Unlock()
	cmd, err := m.launch(restarts)
	if err != nil {
		return nil, err
	}
	// No other process gets its number before it is reaped. Its marks need not be there yet: the kernel shows them only
	// when the program is loaded (environ_read in fs/proc/base.c).
	h, err := process.Hold(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // reaps it; the handle reports its end
	if err != nil {
		return nil, err
	}
	m.set(func(s *runner.Status) {
		s.State, s.PID, s.Started, s.Message = runner.Starting, cmd.Process.Pid, time.Now(), ""
	})
	return h, nil
}

// watch asks the process whether it serves until it ends or hangs, and says which.
func (m *member) watch(ctx context.Context, h *process.Handle) string {
	asking, stop := context.WithCancelCause(ctx)
	var asker sync.WaitGroup
	defer asker.Wait() // else its last answer would be taken for the next process's
	defer stop(nil)
	asker.Go(func() { m.follow(asking, h) })
	if m.spec().Probe == nil {
		m.set(func(s *runner.Status) { s.State, s.Message = runner.Ready, "" })
	} else {
		asker.Go(func() { m.ask(asking, h, stop) })
	}
	if err := h.Wait(asking); err == nil {
		if reason, atLimit := m.noteEnd(); atLimit {
			return reason
		}
		return "it ended; see its log " + LogOf(m.supervisor.cfg.State, m.spec())
	}
	if ctx.Err() != nil {
		return ctx.Err().Error()
	}
	reason := context.Cause(asking).Error()
	if err := h.Stop(ctx, m.grace()); err != nil {
		m.supervisor.cfg.Log.Error("stopping a component that hangs", "component", m.spec().Process(), "error", err)
	}
	return reason
}

// ask probes until the context ends, and cancels it when the process hangs. Of a spec that hands over an older process
// may answer at the same socket for a while: its answers say nothing of this one.
func (m *member) ask(ctx context.Context, h *process.Handle, hung context.CancelCauseFunc) {
	timing := m.supervisor.timing
	var next time.Duration
	failing := time.Time{}
	for {
		by := 0
		if m.spec().HandsOver {
			by = h.PID
		}
		err := probe(ctx, *m.spec().Probe, by)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failing, next = time.Time{}, timing.probeServing
			m.set(func(s *runner.Status) { s.State, s.Message = runner.Ready, "" })
		default:
			m.set(func(s *runner.Status) {
				if s.State == runner.Ready {
					s.State = runner.Unready
				}
				s.Message = err.Error()
			})
			if _, ready := m.supervisor.ready(m.spec().After); !ready || failing.IsZero() {
				failing = time.Now()
			} else if limit := timing.hungAfter + m.spec().Pause.Duration; time.Since(failing) > limit {
				hung(fmt.Errorf("it did not answer for %s: %w", limit, err))
				return
			}
			next = timing.probeStarting
			if since := time.Since(failing); since > time.Second {
				next = timing.probeServing / 4
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}
