// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxCounted bounds what is remembered of access keys, and of subjects.
const maxCounted = 4096

// limits counts the requests of each access key that exists, or of each subject that a provider has signed for.
type limits struct {
	rate, burst int

	mu   sync.Mutex
	keys map[string]*rate.Limiter
}

// allow reports whether one more request may come now.
func (l *limits) allow(keyID string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter, ok := l.keys[keyID]
	if !ok {
		if l.keys == nil || len(l.keys) >= maxCounted { // all begin anew: at worst each has its burst again
			l.keys = map[string]*rate.Limiter{}
		}
		limiter = rate.NewLimiter(rate.Limit(l.rate), l.burst)
		l.keys[keyID] = limiter
	}
	return limiter.AllowN(now, 1)
}

// use is when and for what an access key was used last.
type use struct {
	service, region string
	at              time.Time
}

// usage remembers the last use of access keys, since the service began.
type usage struct {
	mu   sync.Mutex
	keys map[string]use
}

func (u *usage) note(keyID, service, region string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil || len(u.keys) >= 4*maxCounted {
		u.keys = map[string]use{}
	}
	u.keys[keyID] = use{service, region, at}
}

func (u *usage) last(keyID string) (use, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, ok := u.keys[keyID]
	return last, ok
}
