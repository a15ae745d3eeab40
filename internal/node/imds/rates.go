// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"sync"
	"time"
)

const (
	// perSecond is how many requests of a machine are answered each second in the long run, burst how many at once.
	perSecond = 50
	burst     = 200
	// remembered bounds the table; machines that ask too rarely to matter are forgotten first.
	remembered = 1024
)

// rates bounds how often each machine asks, so that none takes the time that others need.
type rates struct {
	now     func() time.Time
	mutex   sync.Mutex
	buckets map[string]bucket
}

// bucket is what a machine has left at a moment.
type bucket struct {
	left float64
	at   time.Time
}

func newRates(now func() time.Time) *rates { return &rates{now: now, buckets: map[string]bucket{}} }

// take counts a request, unless it is one too many.
func (r *rates) take(id string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.now()
	b, ok := r.buckets[id]
	if !ok {
		r.sweep(now)
		b = bucket{left: burst, at: now}
	}
	b = b.fill(now)
	if b.left < 1 {
		r.buckets[id] = b
		return false
	}
	b.left--
	r.buckets[id] = b
	return true
}

func (b bucket) fill(now time.Time) bucket {
	return bucket{left: min(burst, b.left+perSecond*max(now.Sub(b.at), 0).Seconds()), at: now}
}

// sweep forgets machines that have all of theirs again, once there are many.
func (r *rates) sweep(now time.Time) {
	if len(r.buckets) < remembered {
		return
	}
	for id, b := range r.buckets {
		if b.fill(now).left >= burst {
			delete(r.buckets, id)
		}
	}
}
