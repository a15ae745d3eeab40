// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"sync"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/policy"
)

// claims hold a public key for one node while a request with it is in hand. The register learns of a certificate after it was
// written; without claims two workers could certify one key for two nodes in between.
type claims struct {
	mu   sync.Mutex
	held map[pki.Fingerprint]*claim
}

type claim struct {
	owner   string
	count   int
	waiting []item
}

func newClaims() *claims { return &claims{held: map[pki.Fingerprint]*claim{}} }

// take claims a key. If somebody else has it, the item is remembered and given back by release.
func (c *claims) take(key pki.Fingerprint, owner string, i item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.held[key]
	switch {
	case now == nil:
		c.held[key] = &claim{owner: owner, count: 1}
	case now.owner == owner:
		now.count++
	default:
		now.waiting = append(now.waiting, i)
		return false
	}
	return true
}

// release gives a key back and returns who waits for it.
func (c *claims) release(key pki.Fingerprint) []item {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.held[key]
	if now == nil {
		return nil
	}
	if now.count--; now.count > 0 {
		return nil
	}
	delete(c.held, key)
	return now.waiting
}

// contended is the answer about a key that somebody else has claimed.
func contended() policy.Fact[string] {
	f := policy.DontKnow[string]("certificate controller", "another request with the same key is being decided")
	f.Soon = true
	return f
}
