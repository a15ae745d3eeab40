// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"maps"
	"sync"
	"time"
)

// A requester may cause many Events at once, and after that as many as a person could read. The recorder holds a thousand that are not
// written yet and drops what does not fit: who floods it would take from others the only place where they read why they wait.
const (
	eventsAtOnce = 100
	eventsPace   = time.Second
	// manyBudgets are kept before those that are full again are thrown away.
	manyBudgets = 1000
)

// budget is how many Events each requester may still cause.
type budget struct {
	mu    sync.Mutex
	full  map[string]time.Time // when each may cause as many as at first again
	swept time.Time            // when those that may were thrown away last
}

func newBudget() *budget { return &budget{full: map[string]time.Time{}} }

// spend takes one Event, false if there is none to take.
func (b *budget) spend(requester string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.full[requester]
	if full.Before(now) {
		full = now
	}
	if full = full.Add(eventsPace); full.Sub(now) > eventsAtOnce*eventsPace {
		return false
	}
	b.full[requester] = full
	if len(b.full) > manyBudgets && now.Sub(b.swept) >= eventsPace {
		b.swept = now
		maps.DeleteFunc(b.full, func(_ string, full time.Time) bool { return !full.After(now) })
	}
	return true
}
