// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muster.dev/muster/internal/plane/component"
)

// errNotRunning says that a supervisor has not begun yet, or has ended.
var errNotRunning = errors.New("the supervisor does not run")

// Add has one more spec kept running from now on, and does not wait for it. A spec that is kept running already must be
// equal, and nothing changes then.
func (s *Supervisor) Add(spec component.Spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begin == nil {
		return fmt.Errorf("adding %s: %w", spec.Name, errNotRunning)
	}
	specs := []component.Spec{spec}
	for _, m := range s.members {
		switch {
		case m.spec.Name != spec.Name:
			specs = append(specs, m.spec)
		case m.spec.Hash() == spec.Hash():
			return nil
		default:
			return fmt.Errorf("adding %s: it runs with another spec: remove that one first", spec.Name)
		}
	}
	if err := checkOrder(specs); err != nil {
		return err
	}
	m := newMember(s, spec)
	s.members = append(s.members, m)
	s.begin(m)
	return nil
}

// Remove ends a process for good, and returns when it has ended. It also ends a process that no supervisor of this
// state directory keeps running; a missing process is not an error. Nothing that remains may need it.
func (s *Supervisor) Remove(ctx context.Context, spec component.Spec) error {
	s.mu.Lock()
	at := slices.IndexFunc(s.members, func(m *member) bool { return m.spec.Name == spec.Name })
	if at >= 0 {
		m := s.members[at]
		for _, other := range s.members {
			if slices.Contains(other.spec.After, spec.Name) {
				s.mu.Unlock()
				return fmt.Errorf("removing %s: %s needs it", spec.Name, other.spec.Name)
			}
		}
		m.removed = true
		s.members = slices.Delete(slices.Clone(s.members), at, at+1)
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		m.end()
		select {
		case <-m.ended: // it starts no other
		case <-ctx.Done():
			return ctx.Err()
		}
	} else {
		s.mu.Unlock()
	}
	if _, err := Stop(ctx, s.cfg.State, s.cfg.StopGrace, func(p Process) bool { return p.Name == spec.Process() }); err != nil {
		return fmt.Errorf("removing %s: %w", spec.Name, err)
	}
	return nil
}
