// SPDX-License-Identifier: Apache-2.0

package runnertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

// Place is where runners in memory run components, which outlive their runner. It fails on demand.
type Place struct {
	mu      sync.Mutex
	changed chan struct{}
	broken  map[string]string // reasons of components that do not serve, by name
	running []instance
	last    int // process number
	ends    []string
}

// instance is a component that runs.
type instance struct {
	spec    component.Spec
	pid     int
	started time.Time
	// outdated says that its program was replaced.
	outdated bool
}

// NewPlace returns an empty place.
func NewPlace() *Place { return &Place{changed: make(chan struct{}), broken: map[string]string{}} }

// Break has a component not serve from now on, for a reason that its status says.
func (p *Place) Break(name, reason string) { p.do(func() { p.broken[name] = reason }) }

// Mend has a component serve again.
func (p *Place) Mend(name string) { p.do(func() { delete(p.broken, name) }) }

// Replace replaces the program of a component.
func (p *Place) Replace(name string) {
	p.do(func() {
		for i := range p.running {
			p.running[i].outdated = p.running[i].outdated || p.running[i].spec.Name == name
		}
	})
}

// Kill ends a component, which its runner starts again.
func (p *Place) Kill(name string) {
	p.do(func() { p.remove(func(i instance) bool { return i.spec.Name == name }) })
}

// Ends lists the components that runners ended, in order.
func (p *Place) Ends() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ends)
}

func (p *Place) do(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// remove takes instances off. p.mu is held.
func (p *Place) remove(choose func(instance) bool) (names []string) {
	for _, i := range p.running {
		if choose(i) {
			names = append(names, i.spec.Process())
		}
	}
	p.running = slices.DeleteFunc(p.running, choose)
	return names
}

// end is remove by a runner.
func (p *Place) end(spec component.Spec) {
	p.ends = append(p.ends, p.remove(func(i instance) bool { return i.spec.Process() == spec.Process() })...)
}

// Runner runs the components of a place, while its context goes on.
type Runner struct {
	place    *Place
	ctx      context.Context //nolint:containedctx // its life
	specs    []component.Spec
	statuses []runner.Status
}

// New returns a runner that works until the context ends.
func (p *Place) New(ctx context.Context) *Runner {
	r := &Runner{place: p, ctx: ctx}
	go func() {
		for {
			p.mu.Lock()
			if ctx.Err() == nil && r.work() {
				close(p.changed)
				p.changed = make(chan struct{})
			}
			changed := p.changed
			p.mu.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}()
	return r
}

// work brings the place as far towards the list as it gets, and reports whether a component changed its state. The
// place's mu is held.
func (r *Runner) work() (moved bool) {
	for again := true; again; moved = moved || again {
		again = false
		for i, spec := range r.specs {
			now := r.look(spec, r.statuses[i])
			if now.State != r.statuses[i].State {
				now.Since, again = time.Now(), true
			}
			r.statuses[i] = now
		}
	}
	return moved
}

// look starts a component if it does not run and may, and says how it is.
func (r *Runner) look(spec component.Spec, was runner.Status) runner.Status {
	p, now := r.place, was
	at := slices.IndexFunc(p.running, func(i instance) bool { return i.spec.Process() == spec.Process() })
	if at >= 0 && (p.running[at].spec.Hash() != spec.Hash() || was.PID == 0 && p.running[at].outdated && !spec.KeepsProgram) {
		p.end(spec)
		at, was.PID = -1, 0
	}
	if at < 0 {
		if was.PID != 0 {
			now.Restarts++
		}
		now.PID = 0
		if runner.NotReady(r.statuses, spec.After) != "" {
			now.State, now.Message = runner.Waiting, fmt.Sprintf("for %v", spec.After)
			return now
		}
		p.last++
		p.running = append(p.running, instance{spec: spec, pid: p.last, started: time.Now()})
		at = len(p.running) - 1
	}
	now.PID, now.Started, now.Memory.Limit = p.running[at].pid, p.running[at].started, spec.Memory
	p.running[at].spec = spec
	reason, broken := p.broken[spec.Name]
	switch {
	case !broken:
		now.State = runner.Ready
	case was.State == runner.Ready || was.State == runner.Unready:
		now.State = runner.Unready
	default:
		now.State = runner.Starting
	}
	now.Message = reason
	return now
}

// Apply implements [runner.Runner].
func (r *Runner) Apply(_ context.Context, specs []component.Spec) error {
	if err := runner.Check(specs); err != nil {
		return err
	}
	r.place.do(func() {
		statuses := make([]runner.Status, len(specs))
		left := r.specs
		for i, spec := range specs {
			statuses[i] = runner.Status{Name: spec.Name, State: runner.Waiting, Since: time.Now()}
			same := func(other component.Spec) bool { return other.Name == spec.Name }
			if at := slices.IndexFunc(r.specs, same); at >= 0 && r.specs[at].Hash() == spec.Hash() {
				statuses[i] = r.statuses[at]
				if r.specs[at].KeepsProgram && !spec.KeepsProgram && r.place.outdated(spec) {
					statuses[i].PID = 0 // as if it were found
				}
			}
			left = slices.DeleteFunc(slices.Clone(left), same)
		}
		for _, group := range runner.LastFirst(left) {
			for _, spec := range group {
				r.place.end(spec)
			}
		}
		r.specs, r.statuses = slices.Clone(specs), statuses
		if r.ctx.Err() == nil {
			r.work()
		}
	})
	return nil
}

// Status implements [runner.Runner].
func (r *Runner) Status() []runner.Status {
	r.place.mu.Lock()
	defer r.place.mu.Unlock()
	return slices.Clone(r.statuses)
}

// WaitReady implements [runner.Runner].
func (r *Runner) WaitReady(ctx context.Context, names ...string) error {
	for {
		r.place.mu.Lock()
		reason, changed := runner.NotReady(r.statuses, names), r.place.changed
		r.place.mu.Unlock()
		if reason == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; %s", ctx.Err(), reason)
		case <-changed:
		}
	}
}

// Stop implements [runner.Runner].
func (r *Runner) Stop(_ context.Context, _ time.Duration, choose func(process string) bool) (stopped []string, err error) {
	r.place.do(func() {
		var specs []component.Spec
		var statuses []runner.Status
		for i, spec := range r.specs {
			if !choose(spec.Process()) {
				specs, statuses = append(specs, spec), append(statuses, r.statuses[i])
			}
		}
		r.specs, r.statuses = specs, statuses
		stopped = r.place.remove(func(i instance) bool { return choose(i.spec.Process()) })
		r.place.ends = append(r.place.ends, stopped...)
	})
	return stopped, nil
}

// Running implements [runner.Runner].
func (r *Runner) Running() ([]runner.Running, error) {
	r.place.mu.Lock()
	defer r.place.mu.Unlock()
	var running []runner.Running
	for _, i := range r.place.running {
		running = append(running, runner.Running{Process: i.spec.Process(), Spec: i.spec.Hash(), Started: i.started})
	}
	return running, nil
}

// Outdated implements [runner.Runner].
func (r *Runner) Outdated(spec component.Spec) (bool, error) {
	r.place.mu.Lock()
	defer r.place.mu.Unlock()
	return r.place.outdated(spec), nil
}

// outdated reports whether a component runs whose program was replaced. p.mu is held.
func (p *Place) outdated(spec component.Spec) bool {
	return slices.ContainsFunc(p.running, func(i instance) bool { return i.spec.Process() == spec.Process() && i.outdated })
}
