// SPDX-License-Identifier: Apache-2.0

package sts

import (
	"fmt"
	"sync"
	"time"
)

// A host that failed so often in a row is left alone for a while; then one question at a time finds out whether it is back.
const (
	breakAfter = 5
	breakFor   = 500 * time.Millisecond
	mostHosts  = 256
)

// breaker is what is known about one host.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
	probing  bool
	last     error
}

// open returns why the host is not asked now, nil if it may be. It promises nothing: see begin.
func (b *breaker) open(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why(now)
}

func (b *breaker) why(now time.Time) error {
	if b.failures < breakAfter || !now.Before(b.until) && !b.probing {
		return nil
	}
	return fmt.Errorf("it failed %d times in a row and is tried again in at most %s; last: %w", b.failures, breakFor, b.last)
}

// begin is called before a question is asked. When there is an error it must not be.
func (b *breaker) begin(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.why(now); err != nil {
		return err
	}
	b.probing = b.failures >= breakAfter
	return nil
}

// end tells what came of a question; err is nil if the host answered, whatever it said.
func (b *breaker) end(now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	if err == nil {
		b.failures, b.last = 0, nil
		return
	}
	b.failures++
	b.until, b.last = now.Add(breakFor), err
}

// abandoned ends a question of which nothing came because whoever asked went away.
func (b *breaker) abandoned() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
}

// breakers are those of all hosts. Tokens name hosts, within the rules, so there are bounds: the rest share one.
type breakers struct {
	mu    sync.Mutex
	hosts map[string]*breaker
	rest  breaker
}

func (b *breakers) of(host string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.hosts[host]
	switch {
	case ok:
		return known
	case len(b.hosts) >= mostHosts:
		return &b.rest
	}
	if b.hosts == nil {
		b.hosts = map[string]*breaker{}
	}
	known = &breaker{}
	b.hosts[host] = known
	return known
}
