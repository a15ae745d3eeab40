// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"log/slog"
)

// step is one step of a start.
type step struct {
	name string
	do   func() error
}

// inOrder takes the steps of a start one after the other, until one fails. The log says at level debug which step it is
// at.
func inOrder(log *slog.Logger, steps []step) error {
	for _, s := range steps {
		log.Debug("starting", "step", s.name)
		if err := s.do(); err != nil {
			return err
		}
	}
	return nil
}

// into is a step's work that sets a value.
func into[T any](value *T, find func() (T, error)) func() error {
	return func() (err error) {
		*value, err = find()
		return err
	}
}

// option is a check of an option of the command line, whose name is in the error.
func option(name string, check func() error) func() error {
	return func() error {
		if err := check(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
}
