// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"muster.dev/muster/internal/platform/leaderlease"
)

const (
	fewest = 16
	most   = 64
	// step is how many workers are added at once, and pace how often; tick is how often a clock looks.
	step = 8
	pace = 20 * time.Millisecond
	tick = 200 * time.Millisecond
	// busy is the part of the processors that this process may use and still be said to wait for others.
	busy = 0.8
)

// crew is how many workers there are. More of them help only while requests wait for the API server or a signer; and
// requests that arrive there together cost both it and etcd less (docs/benchmarks.md). Workers that have nothing to do
// cost nothing, so none is dismissed.
type crew struct {
	fixed int
	most  int
	mu    sync.Mutex
	size  int
	hire  func()
	at    time.Time // when we looked last, and how much processor time had been used by then
	used  time.Duration
}

func newCrew(fixed, most int) *crew { return &crew{fixed: fixed, most: most} }

func (c *crew) start(hire func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hire, c.size, c.at, c.used = hire, c.fixed, time.Now(), used()
	if c.size == 0 {
		c.size = min(fewest, c.most)
	}
	for range c.size {
		hire()
	}
}

// shares leave a quarter to other signers, and half to other requesters.
func (c *crew) shares() shares {
	c.mu.Lock()
	defer c.mu.Unlock()
	return shares{signer: max(1, c.size*3/4), requester: max(1, c.size/2)}
}

func (c *crew) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// recruit adds workers if there is more to do than there are. Workers call it, and a clock for when all of them hang.
func (c *Controller) recruit() {
	if c.crew.growing() && c.queue.starving() {
		c.crew.short()
		c.queue.rouse()
	}
}

// growing reports whether it may become larger, and it is time to look.
func (c *crew) growing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fixed == 0 && c.size < c.most && time.Since(c.at) >= pace
}

// short is called when there is more to do than there are workers.
func (c *crew) short() {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := time.Since(c.at)
	if c.fixed > 0 || c.size >= c.most || passed < pace {
		return
	}
	now := used()
	load := float64(now-c.used) / float64(passed) / float64(runtime.GOMAXPROCS(0))
	c.at, c.used = time.Now(), now
	if load > busy {
		return
	}
	for range min(step, c.most-c.size) {
		c.size++
		c.hire()
	}
}

// used is the processor time of this process.
func used() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// work takes one request after another until the queue is closed, and none while the lease may be another's. Passes go
// on until the work is abandoned, which is after leading is done.
func (c *Controller) work(leading, work context.Context) {
	for {
		i, ok := c.queue.get()
		if !ok {
			return
		}
		if c.AwaitLease(leading) != nil {
			c.queue.done(i)
			continue // the queue is being closed
		}
		c.recruit()
		c.attend(work, i)
	}
}

// attend makes one pass and decides when the request comes again.
func (c *Controller) attend(ctx context.Context, i item) {
	defer c.queue.done(i)
	again, err := c.guarded(ctx, i)
	if ctx.Err() != nil {
		return // another replica leads, or will
	}
	switch {
	case errors.Is(err, leaderlease.ErrLapsed):
		c.queue.add(i) // it is taken once the lease is renewed
		return
	case err != nil:
		c.config.Logger.Error("certificate request not handled, trying again", "csr", i.name, "requester", i.requester, "error", err)
		c.queue.addAfter(i, c.retries.When(i))
		return
	case again == afterAWhile:
		c.queue.addAfter(i, c.waits.When(i))
	case again == afterRecheck:
		c.queue.addAfter(i, c.config.Recheck)
	default:
		c.queue.forget(i)
		c.waits.Forget(i)
	}
	c.retries.Forget(i)
}

// when a request comes again.
type when int

const (
	onEvent      when = iota // if something happens
	afterAWhile              // which grows each time
	afterRecheck             // soon: it waits for the register
	left                     // if the request itself changes: it is left to somebody else
)

// guarded keeps one bad request from ending the program or holding a worker.
func (c *Controller) guarded(ctx context.Context, i item) (again when, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			c.metrics.errors.WithLabelValues(i.signer, "panic").Inc()
			again, err = onEvent, fmt.Errorf("handling the request panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return c.handle(ctx, i)
}
