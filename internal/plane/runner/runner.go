// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"time"

	"muster.dev/muster/internal/plane/component"
)

// Runner keeps the components of a list running. It is safe for use by many at once.
type Runner interface {
	// Apply makes specs the whole list, and returns when the components that left the list have ended; WaitReady waits
	// for those that start. A component that runs with an equal hash goes on as it is, and its new Memory, Grace, After
	// and KeepsProgram are in force. An error of [Check] changes nothing. After any other error the list is in force, and
	// Apply of the same list carries on.
	Apply(ctx context.Context, specs []component.Spec) error
	// Status returns the state of each component, in the order of the list.
	Status() []Status
	// WaitReady returns when all named components are ready. If the context ends before, the error wraps the context's
	// and says what keeps each component.
	WaitReady(ctx context.Context, names ...string) error
	// Stop ends every component whose process name (component.Spec.Process) is chosen, all at once, and returns their
	// names when they have ended. Chosen components leave the list; components that an earlier runner started are ended
	// too. Each has the given time to end, or that of its spec if grace is 0. After an error, the next Apply ends those
	// that go on, or the next Stop that chooses them.
	Stop(ctx context.Context, grace time.Duration, choose func(process string) bool) (stopped []string, err error)
	// Running lists the components that run, whichever runner started them, oldest first.
	Running() ([]Running, error)
	// Outdated reports whether the component of a spec runs, whichever runner started it, and the program of the spec is
	// another one now than when it was started.
	Outdated(spec component.Spec) (bool, error)
}

// Running is a component that runs.
type Running struct {
	// Process is its name within the account ([component.Spec.Process]).
	Process string
	// Spec is the hash of the spec that it was started from.
	Spec string
	// Started is when it was started.
	Started time.Time
}
