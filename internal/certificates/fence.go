// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"errors"
	"time"
)

// errLapsed means that another replica may lead by now, of which this one has not heard yet.
var errLapsed = errors.New("the lease of this replica has run out and was not renewed yet: nothing is written")

// Renewed tells until when the lease is this replica's: it is for an election to call. Nobody calls it without one, and then there is no end.
//
// That a lease was lost is noticed by a clock, as late as the program runs again after it was stopped, or the machine suspended. What was
// judged before that is not to be written after it: another replica may have decided since that the same request has to wait.
func (c *Controller) Renewed(until time.Time) { c.leased.Store(&until) }

// upToDate returns nil if what was judged may be written: it is asked right before each write. What gets past it in spite of that, because
// it took long on its way, is written only if the request is still as it was read.
func (c *Controller) upToDate(i item) error {
	if c.ledger.changed(i) {
		return errChanged
	}
	return c.holdsLease()
}

func (c *Controller) holdsLease() error {
	until, now := c.leased.Load(), c.config.Now()
	// Both clocks count: the monotonic one stands still while a machine is suspended, and the other one may be set.
	if until == nil || now.Before(*until) && now.Round(0).Before(until.Round(0)) {
		return nil
	}
	return errLapsed
}
