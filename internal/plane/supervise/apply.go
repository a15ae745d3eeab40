// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/statedir"
)

// errEnded says that a supervisor starts nothing any more.
var errEnded = errors.New("the supervisor has ended")

// Apply implements [runner.Runner]. Before Run begins, the list is only kept for it.
func (s *Supervisor) Apply(ctx context.Context, specs []component.Spec) error {
	if err := runner.Check(specs); err != nil {
		return err
	}
	if err := s.replace(specs); err != nil {
		return err
	}
	if err := s.endLeaving(ctx); err != nil {
		return err
	}
	if s.cfg.Owns == nil {
		return nil
	}
	_, err := s.stop(ctx, nil, func(process string) bool { return s.cfg.Owns(process) && !s.lists(process) })
	return err
}

// replace makes specs the list: members go on, begin, are replaced, or leave.
func (s *Supervisor) replace(specs []component.Spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errEnded
	}
	before := map[string]*member{}
	for _, m := range slices.Concat(s.leaving, s.members) {
		before[m.spec().Name] = m
	}
	members := make([]*member, 0, len(specs))
	for _, spec := range specs {
		m := before[spec.Name]
		delete(before, spec.Name)
		switch {
		case m != nil && !m.removed && m.spec().Hash() == spec.Hash() && (spec.KeepsProgram || !m.outdated):
			m.take(spec)
		default:
			m = newMember(s, spec, m)
			if s.begin != nil {
				s.begin(m)
			}
		}
		members = append(members, m)
	}
	s.members, s.leaving = members, nil
	for _, m := range before {
		m.leave()
		s.leaving = append(s.leaving, m)
	}
	s.tell()
	return nil
}

// endLeaving ends the processes of the members that left the list, those first that need others.
func (s *Supervisor) endLeaving(ctx context.Context) error {
	s.mu.Lock()
	leaving := map[string]*member{}
	var specs []component.Spec
	for _, m := range s.leaving {
		if !m.stopping {
			leaving[m.spec().Name] = m
			specs = append(specs, m.spec())
		}
	}
	s.mu.Unlock()
	for _, together := range runner.LastFirst(specs) {
		var group sync.WaitGroup
		problems := make([]error, len(together))
		for i, spec := range together {
			group.Go(func() { problems[i] = s.endMember(ctx, leaving[spec.Name]) })
		}
		group.Wait()
		if err := errors.Join(problems...); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.leaving = slices.DeleteFunc(s.leaving, func(m *member) bool { return leaving[m.spec().Name] == m })
	s.mu.Unlock()
	return nil
}

// endMember ends the process of a member that has left, once the member starts no other.
func (s *Supervisor) endMember(ctx context.Context, m *member) error {
	spec := m.spec()
	if err := m.await(ctx); err != nil {
		return fmt.Errorf("ending %s: %w", spec.Name, err)
	}
	_, err := Stop(ctx, s.cfg.State, m.grace(), func(p Process) bool { return p.Name == spec.Process() })
	if err != nil {
		return fmt.Errorf("ending %s: %w", spec.Name, err)
	}
	return nil
}

// Stop implements [runner.Runner]. It never ends the process that calls it.
func (s *Supervisor) Stop(ctx context.Context, grace time.Duration, choose func(process string) bool) (stopped []string, err error) {
	chosen := s.dismiss(choose)
	defer func() { s.dismissed(chosen, err == nil) }()
	graces := map[string]time.Duration{}
	for _, m := range chosen {
		if err := m.await(ctx); err != nil {
			return nil, err
		}
		graces[m.spec().Process()] = m.grace()
	}
	return s.stop(ctx, func(process string) time.Duration { return cmp.Or(grace, graces[process]) }, choose)
}

// dismiss has chosen members leave the list, for a call of Stop that ends their processes. Members that an earlier call
// could not end are chosen again.
func (s *Supervisor) dismiss(choose func(process string) bool) (chosen []*member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var staying []*member
	for _, m := range s.members {
		if choose(m.spec().Process()) {
			m.leave()
			s.leaving = append(s.leaving, m)
		} else {
			staying = append(staying, m)
		}
	}
	s.members = staying
	for _, m := range s.leaving {
		if choose(m.spec().Process()) {
			m.stopping = true
			chosen = append(chosen, m)
		}
	}
	s.tell()
	return chosen
}

// dismissed forgets members whose processes have ended, or leaves them to the next call of Apply or Stop.
func (s *Supervisor) dismissed(chosen []*member, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range chosen {
		m.stopping = false
	}
	if ended {
		s.leaving = slices.DeleteFunc(s.leaving, func(m *member) bool { return slices.Contains(chosen, m) })
	}
}

// stop ends chosen processes, each within its grace: that of the supervisor for 0.
func (s *Supervisor) stop(ctx context.Context, grace func(process string) time.Duration, choose func(process string) bool) (stopped []string, err error) {
	ended, err := stop(ctx, s.cfg.State, func(p Process) time.Duration {
		if grace == nil {
			return s.cfg.StopGrace
		}
		return cmp.Or(grace(p.Name), s.cfg.StopGrace)
	}, func(p Process) bool { return choose(p.Name) })
	for _, p := range ended {
		stopped = append(stopped, p.Name)
	}
	return stopped, err
}

// lists reports whether a process name is of a spec in the list.
func (s *Supervisor) lists(process string) bool {
	return slices.ContainsFunc(s.specs(), func(spec component.Spec) bool { return spec.Process() == process })
}

// Running implements [runner.Runner], for the whole state directory.
func (s *Supervisor) Running() ([]runner.Running, error) { return Running(s.cfg.State) }

// Outdated implements [runner.Runner].
func (s *Supervisor) Outdated(spec component.Spec) (bool, error) {
	running, err := Find(s.cfg.State)
	if err != nil {
		return false, err
	}
	program, err := filepath.EvalSymlinks(spec.Path)
	if errors.Is(err, fs.ErrNotExist) { // no program takes its place
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding program of %s: %w", spec.Name, err)
	}
	p, runs := predecessor(running, spec.Process())
	return runs && p.Executable != program, nil
}

// Running lists what runs of a state directory, whether or not a supervisor runs.
func Running(dir statedir.Dir) ([]runner.Running, error) {
	found, err := Find(dir)
	if err != nil {
		return nil, err
	}
	running := make([]runner.Running, 0, len(found))
	for _, p := range found {
		running = append(running, runner.Running{Process: p.Name, Spec: p.Spec, Started: p.Started})
	}
	return running, nil
}
