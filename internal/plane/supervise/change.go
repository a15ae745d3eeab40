// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

// Add has one more spec run, as [runner.List] does.
func (s *Supervisor) Add(spec component.Spec) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return runner.NewList(s, s.specs()).Add(spec)
}

// Remove ends a process for good, as [runner.List] does.
func (s *Supervisor) Remove(ctx context.Context, spec component.Spec) error {
	s.changing.Lock()
	list := runner.NewList(s, s.specs())
	s.changing.Unlock()
	return list.Remove(ctx, spec)
}

// Statuses is Status.
func (s *Supervisor) Statuses() []runner.Status { return s.Status() }
