// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"muster.dev/muster/internal/plane/component"
)

// List is the one owner of the list of a runner whose components come and go one at a time. It is safe for use by many
// at once.
type List struct {
	runner Runner
	mu     sync.Mutex
	specs  []component.Spec
}

// NewList returns the list of a runner that was told to run specs, or is about to be.
func NewList(runner Runner, specs []component.Spec) *List {
	return &List{runner: runner, specs: slices.Clone(specs)}
}

// Add has one more spec run from now on, and does not wait for it. A spec that is in the list already must be equal, and
// nothing changes then.
func (l *List) Add(spec component.Spec) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.specs {
		switch {
		case other.Name != spec.Name:
		case other.Hash() == spec.Hash():
			return nil
		default:
			return fmt.Errorf("adding %s: it runs with another spec: remove that one first", spec.Name)
		}
	}
	specs := append(slices.Clone(l.specs), spec)
	if err := l.runner.Apply(context.Background(), specs); err != nil { // nothing leaves the list, so Apply does not wait
		return fmt.Errorf("adding %s: %w", spec.Name, err)
	}
	l.specs = specs
	return nil
}

// Remove ends a component for good, and returns when it has ended. A component that an earlier runner started is ended
// too; a missing component is not an error. Nothing that remains may need it.
func (l *List) Remove(ctx context.Context, spec component.Spec) error {
	if err := l.drop(spec.Name); err != nil {
		return err
	}
	if _, err := l.runner.Stop(ctx, 0, func(process string) bool { return process == spec.Process() }); err != nil {
		return fmt.Errorf("removing %s: %w", spec.Name, err)
	}
	return nil
}

func (l *List) drop(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.specs {
		if slices.Contains(other.After, name) {
			return fmt.Errorf("removing %s: %s needs it", name, other.Name)
		}
	}
	l.specs = slices.DeleteFunc(slices.Clone(l.specs), func(s component.Spec) bool { return s.Name == name })
	return nil
}
