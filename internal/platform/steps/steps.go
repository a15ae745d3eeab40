// SPDX-License-Identifier: Apache-2.0

// Package steps takes the named steps of a start one after the other, and waits before a step is tried again.
package steps

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Step is one step of a start.
type Step struct {
	name string
	do   func() error
	skip bool
}

// New returns a step that does something.
func New(name string, do func() error) Step { return Step{name: name, do: do} }

// Into returns a step that finds a value and keeps it.
func Into[T any](name string, value *T, find func() (T, error)) Step {
	return New(name, func() (err error) {
		*value, err = find()
		return err
	})
}

// Option returns a step that checks an option of the command line, whose name is in its error.
func Option(name, option string, check func() error) Step {
	return New(name, func() error {
		if err := check(); err != nil {
			return fmt.Errorf("%s: %w", option, err)
		}
		return nil
	})
}

// If returns the step as one that is left out where the condition does not hold.
func (s Step) If(condition bool) Step {
	s.skip = s.skip || !condition
	return s
}

// InOrder takes the steps of a start one after the other, until one fails. The log says at level debug which step it is
// at.
func InOrder(log *slog.Logger, steps ...Step) error {
	for _, s := range steps {
		if s.skip {
			continue
		}
		log.Debug("starting", "step", s.name)
		if err := s.do(); err != nil {
			return err
		}
	}
	return nil
}

// Pause waits before a step is tried again. It returns the error of the context if that ends before.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
