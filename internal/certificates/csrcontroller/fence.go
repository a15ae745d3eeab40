// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"time"
)

// Renewed sets until when the lease is this replica's. An election calls it; without an election the lease never ends.
func (c *Controller) Renewed(until time.Time) { c.tenure.Renewed(until) }

// AwaitLease returns nil once the lease is this replica's, at once if it is, and the cause of the context's end
// otherwise. It is to be asked before a request is decided and before an Event is written.
func (c *Controller) AwaitLease(ctx context.Context) error { return c.tenure.Await(ctx) }

// upToDate returns nil if what was judged may be written: it is asked right before each write. A write that gets past
// it in spite of that, because it took long on its way, is done only if the request is still as it was read.
func (c *Controller) upToDate(i item) error {
	if c.ledger.factsChanged(i) {
		return errChanged
	}
	return c.tenure.Check()
}
