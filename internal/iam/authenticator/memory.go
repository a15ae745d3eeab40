// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/platform/lru"
)

// hash names a token. It is a cryptographic one: with two tokens of one hash, an attacker could pass for another
// principal.
type hash = [sha256.Size]byte

// memory has the makers of tokens. Both halves are bounded, and the second one holds all that a flood of tokens can
// fill: bad ones, and those of principals that are not let in, as many as there are in all AWS accounts.
type memory struct {
	shards [shards]shard
	// changes is how often something was forgotten. An answer from before a change is not put in after it.
	changes atomic.Uint64
}

const shards = 16 // so that callers seldom wait for each other

type shard struct {
	mu   sync.Mutex
	good *lru.Map[hash, remembered]
	bad  *lru.Map[hash, remembered]
}

type remembered struct {
	id    *person // nil for a "no"
	no    *tokenverify.Refused
	claim string // the access key that a "no" is about
	letIn bool
	until time.Time
}

func newMemory(good, bad int) *memory {
	m := &memory{}
	for n := range m.shards {
		m.shards[n].good = lru.New[hash, remembered]((good + shards - 1) / shards)
		m.shards[n].bad = lru.New[hash, remembered]((bad + shards - 1) / shards)
	}
	return m
}

func (m *memory) shard(h hash) *shard { return &m.shards[h[0]%shards] }

// get finds what is remembered and still true.
func (m *memory) get(h hash, now time.Time) (remembered, bool) {
	s := m.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, half := range []*lru.Map[hash, remembered]{s.good, s.bad} {
		r, ok := half.Get(h)
		switch {
		case ok && now.Before(r.until):
			return r, true
		case ok && (r.id == nil || !now.Before(r.id.OutageUntil)):
			half.Delete(h)
		}
	}
	return remembered{}, false
}

// outlasting finds the maker of a token as last known, for use while no answer can be had now.
func (m *memory) outlasting(h hash, now time.Time) (*person, bool) {
	s := m.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.good.Get(h)
	return r.id, ok && now.Before(r.id.OutageUntil)
}

// put remembers what was found out, unless something changed since. A refusal takes the token out of what is remembered
// as good.
func (m *memory) put(h hash, r remembered, changes uint64) {
	s := m.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good.Delete(h)
	s.bad.Delete(h)
	switch {
	case m.changes.Load() != changes:
	case r.letIn:
		s.good.Put(h, r)
	default:
		s.bad.Put(h, r)
	}
}

// forget drops what a change is about, and all refusals: they may be wrong now.
func (m *memory) forget(c keyservice.Change) {
	m.changes.Add(1) // first: a put after this knows
	for n := range m.shards {
		s := &m.shards[n]
		s.mu.Lock()
		s.bad.Clear()
		if c.All {
			s.good.Clear()
		} else {
			s.good.DeleteFunc(func(_ hash, r remembered) bool { return tokenverify.Concerns(c, r.id.Identity) })
		}
		s.mu.Unlock()
	}
}

// size is how many entries there are.
func (m *memory) size() (good, bad int) {
	for n := range m.shards {
		s := &m.shards[n]
		s.mu.Lock()
		good += s.good.Len()
		bad += s.bad.Len()
		s.mu.Unlock()
	}
	return good, bad
}
