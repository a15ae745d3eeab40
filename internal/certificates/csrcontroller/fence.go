// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errLapsed means that another replica may lead by now, of which this one has not heard yet.
var errLapsed = errors.New("the lease of this replica has run out and was not renewed yet: nothing is decided, recorded or written")

// tenure is the time for which the lease is this replica's.
type tenure struct {
	until    time.Time
	replaced chan struct{} // closed when the lease was renewed
	noted    atomic.Bool   // it was logged that it has run out
}

// Renewed sets until when the lease is this replica's: it is for an election to call. Nobody calls it without one, and then there is no end.
//
// That a lease was lost is noticed by a clock, as late as the program runs again after it was stopped, or the machine suspended. A
// judgement from before that is not to be written after it: another replica may have decided since that the same request has to wait.
func (c *Controller) Renewed(until time.Time) {
	before := c.tenure.Swap(&tenure{until: until, replaced: make(chan struct{})})
	if before == nil {
		return
	}
	close(before.replaced)
	if before.noted.Load() {
		c.config.Logger.Info("the lease was renewed: this replica goes on")
	}
}

// AwaitLease returns nil once the lease is this replica's, at once if it is, and the cause of the context's end otherwise. It is to be
// asked before a request is decided and before an Event is written.
func (c *Controller) AwaitLease(ctx context.Context) error {
	for {
		now := c.tenure.Load()
		if c.holds(now) {
			return nil
		}
		if now.noted.CompareAndSwap(false, true) {
			c.config.Logger.Warn("this replica waits for its lease", "reason", errLapsed)
		}
		select {
		case <-now.replaced:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// upToDate returns nil if what was judged may be written: it is asked right before each write. A write that gets past it in spite of
// that, because it took long on its way, is done only if the request is still as it was read.
func (c *Controller) upToDate(i item) error {
	if c.ledger.factsChanged(i) {
		return errChanged
	}
	return c.holdsLease()
}

func (c *Controller) holdsLease() error {
	if c.holds(c.tenure.Load()) {
		return nil
	}
	return errLapsed
}

// holds reports whether a tenure has not run out. Both clocks count: the monotonic one stands still while a machine is suspended, and the
// other one may be set.
func (c *Controller) holds(t *tenure) bool {
	now := c.config.Now()
	return t == nil || now.Before(t.until) && now.Round(0).Before(t.until.Round(0))
}
