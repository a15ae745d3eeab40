// SPDX-License-Identifier: Apache-2.0

package leaderlease

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// ErrLapsed means that another replica may lead by now, though this replica has not heard of it yet.
var ErrLapsed = errors.New("the lease of this replica has run out and was not renewed yet: nothing is decided, recorded or written")

// Tenure is the time for which a lease is this replica's. Without an election nobody calls Renewed, and then there is
// no end.
type Tenure struct {
	now    func() time.Time
	logger *slog.Logger
	term   atomic.Pointer[term] // nil without an election
}

// term is the time until the lease runs out.
type term struct {
	until    time.Time
	replaced chan struct{} // closed when the lease was renewed
	noted    atomic.Bool   // it was logged that it has run out
}

// NewTenure makes a tenure without an end.
func NewTenure(now func() time.Time, logger *slog.Logger) *Tenure {
	return &Tenure{now: now, logger: logger}
}

// Renewed sets until when the lease is this replica's: it is for a Lock to call.
//
// That a lease was lost is noticed by a clock, as late as the program runs again after it was stopped, or the machine
// suspended. A judgement from before that is not to be written after it: another replica may have decided otherwise
// since.
func (t *Tenure) Renewed(until time.Time) {
	before := t.term.Swap(&term{until: until, replaced: make(chan struct{})})
	if before == nil {
		return
	}
	close(before.replaced)
	if before.noted.Load() {
		t.logger.Info("the lease was renewed: this replica goes on")
	}
}

// Await returns nil once the lease is this replica's, at once if it is, and the cause of the context's end otherwise.
func (t *Tenure) Await(ctx context.Context) error {
	for {
		now := t.term.Load()
		if t.holds(now) {
			return nil
		}
		if now.noted.CompareAndSwap(false, true) {
			t.logger.Warn("this replica waits for its lease", "reason", ErrLapsed)
		}
		select {
		case <-now.replaced:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Check returns ErrLapsed if the lease has run out. It is to be asked right before each write.
func (t *Tenure) Check() error {
	if t.holds(t.term.Load()) {
		return nil
	}
	return ErrLapsed
}

// holds reports whether a term has not run out. Both clocks count: the monotonic one stands still while a machine is
// suspended, and the other one may be set.
func (t *Tenure) holds(of *term) bool {
	now := t.now()
	return of == nil || now.Before(of.until) && now.Round(0).Before(of.until.Round(0))
}
