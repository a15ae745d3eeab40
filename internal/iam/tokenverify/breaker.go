// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"fmt"
	"sync"
	"time"

	"muster.dev/muster/internal/platform/lru"
)

// A host that failed so often in a row is left alone for a while; then one question at a time finds out whether it is
// back. If a question has no answer after probeTime, another one may be asked: the first may be lost though the host is
// back.
const (
	breakAfter = 5
	breakFor   = 500 * time.Millisecond
	probeTime  = time.Second
	mostHosts  = 256 // that answered, and as many that did not
)

// breaker is what is known about one host.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
	probe    time.Time // when the last one that is on its way began; zero if none is
	last     error
}

// open returns why the host is not asked now, nil if it may be. It promises nothing: see begin.
func (b *breaker) open(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why(now)
}

func (b *breaker) why(now time.Time) error {
	if b.failures < breakAfter || !now.Before(b.until) && !now.Before(b.probe.Add(probeTime)) {
		return nil
	}
	return fmt.Errorf("it failed %d times in a row and is tried again in at most %s; last: %w", b.failures, probeTime, b.last)
}

// begin is called before a question is asked. If it returns an error, the question must not be asked.
func (b *breaker) begin(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.why(now); err != nil {
		return err
	}
	if b.failures >= breakAfter {
		b.probe = now
	}
	return nil
}

// end tells what came of the question that was begun then; err is nil if the host answered, whatever it said.
func (b *breaker) end(began, now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over(began)
	if err == nil {
		b.failures, b.last = 0, nil
		return
	}
	b.failures++
	b.until, b.last = now.Add(breakFor), err
}

// abandoned ends a question without an answer because its caller went away.
func (b *breaker) abandoned(began time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over(began)
}

// over lets others find out whether the host is back, unless somebody has begun to since.
func (b *breaker) over(began time.Time) {
	if b.probe.Equal(began) {
		b.probe = time.Time{}
	}
}

// breakers are those of all hosts. Tokens name hosts, within the rules, and most of those that somebody makes up do not
// exist: hosts that answered are kept apart from them, and nobody shares a breaker with anybody.
type breakers struct {
	mu       sync.Mutex
	answered *lru.Map[string, *breaker]
	others   *lru.Map[string, *breaker]
}

func newBreakers() *breakers {
	return &breakers{answered: lru.New[string, *breaker](mostHosts), others: lru.New[string, *breaker](mostHosts)}
}

// of finds a host's breaker, and reports whether the host ever answered.
func (b *breakers) of(host string) (known *breaker, answered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, answered = b.answered.Get(host); answered {
		return known, true
	}
	known, ok := b.others.Get(host)
	if !ok {
		known = &breaker{}
		b.others.Put(host, known)
	}
	return known, false
}

// exists tells that a host answered.
func (b *breakers) exists(host string, its *breaker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.answered.Get(host); !ok {
		b.others.Delete(host)
		b.answered.Put(host, its)
	}
}
