// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/statedir"
)

// Config is what a Supervisor needs.
type Config struct {
	State statedir.Dir
	Log   *slog.Logger
	// StopGrace is how long a process that must be replaced may take to end; 10 s if zero.
	StopGrace time.Duration
	// OwnUsers has each process whose spec has a view run as a user of its own (package planeid), which root alone can
	// do.
	OwnUsers bool
	// Owns reports whether a process, by its name within the account, is of the plane whose list Apply is given: if no
	// spec of the list has that name, Apply ends the process, whichever supervisor started it. Nil: Apply ends what it
	// was given before and is not given again.
	Owns func(process string) bool
	// Memory returns what holds a process to the memory of its spec. Its error says in one line why this host cannot.
	// Nil: no process is held.
	Memory func(spec component.Spec) (MemoryGroup, error)
}

// Supervisor keeps the processes of a set of specs running.
type Supervisor struct {
	cfg    Config
	timing timing

	mu      sync.Mutex
	begin   func(*member) // while it runs
	over    bool          // it has run
	members []*member     // in the order of the list
	leaving []*member     // members whose processes are yet to be ended
	changed chan struct{} // closed and replaced at every change of a status
}

// New makes a supervisor that runs nothing yet.
func New(cfg Config) (*Supervisor, error) {
	if cfg.State == "" || cfg.Log == nil {
		return nil, errors.New("supervisor needs a state directory and a logger")
	}
	if cfg.StopGrace == 0 {
		cfg.StopGrace = 10 * time.Second
	}
	return &Supervisor{cfg: cfg, timing: defaultTiming(), changed: make(chan struct{})}, nil
}

// Run keeps the list running until the context ends. The processes then go on without it. It is called once.
func (s *Supervisor) Run(ctx context.Context) {
	var group sync.WaitGroup
	s.mu.Lock()
	s.begin = func(m *member) {
		ctx, cancel := context.WithCancel(ctx)
		m.end, m.ended = cancel, make(chan struct{})
		group.Go(func() {
			defer close(m.ended)
			defer cancel()
			m.run(ctx)
		})
	}
	for _, m := range s.members {
		s.begin(m)
	}
	s.mu.Unlock()
	group.Go(func() { s.keepGiven(ctx) })
	s.rotateLogs(ctx)
	s.mu.Lock()
	s.begin, s.over = nil, true // the group begins nothing once it is waited for
	s.mu.Unlock()
	group.Wait()
}

// Status implements [runner.Runner].
func (s *Supervisor) Status() []runner.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	statuses := make([]runner.Status, len(s.members))
	for i, m := range s.members {
		statuses[i] = m.status
	}
	return statuses
}

// specs are those of all members.
func (s *Supervisor) specs() []component.Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	specs := make([]component.Spec, len(s.members))
	for i, m := range s.members {
		specs[i] = m.spec()
	}
	return specs
}

// WaitReady implements [runner.Runner].
func (s *Supervisor) WaitReady(ctx context.Context, names ...string) error {
	for {
		changed, ready := s.ready(names)
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; %s", ctx.Err(), runner.NotReady(s.Status(), names))
		case <-changed:
		}
	}
}

// ready reports whether all are, and what to wait on for the next change.
func (s *Supervisor) ready(names []string) (changed <-chan struct{}, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if !slices.ContainsFunc(s.members, func(m *member) bool { return m.spec().Name == name && m.status.State == runner.Ready }) {
			return s.changed, false
		}
	}
	return s.changed, true
}

// set changes a member's status and wakes up the waiting callers.
func (s *Supervisor) set(m *member, change func(*runner.Status)) {
	s.mu.Lock()
	before := m.status
	if m.removed {
		s.mu.Unlock()
		return
	}
	change(&m.status)
	after := m.status
	if before.State != after.State {
		m.status.Since = time.Now()
	}
	if before != after {
		s.tell()
	}
	s.mu.Unlock()
	if before.State != after.State {
		s.cfg.Log.Info("component changed state", "component", m.spec().Process(), "from", before.State, "to", after.State, "process_id", after.PID, "reason", after.Message)
	}
}

// tell wakes up the waiting callers. s.mu is held.
func (s *Supervisor) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}
