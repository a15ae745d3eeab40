// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// claims hold a public key for one subject while a request with it is in hand. The register learns of a certificate
// after it was written; without claims two workers could certify one key for two nodes in between.
type claims struct {
	mu   sync.Mutex
	held map[pki.Fingerprint]*claim
	kept map[types.UID]pki.Fingerprint // by requests of which it is not known yet whether they got a certificate
}

type claim struct {
	owner   string
	count   int
	waiting []item
}

func newClaims() *claims {
	return &claims{held: map[pki.Fingerprint]*claim{}, kept: map[types.UID]pki.Fingerprint{}}
}

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

// keep claims a key once more, until drop: for a request that is approved and that somebody else signs, or whose
// certificate may have been written although the answer was lost. The register learns of the certificate when that is
// seen. So there are at most as many claims as such requests.
func (c *claims) keep(uid types.UID, key pki.Fingerprint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.held[key]; now != nil {
		if _, already := c.kept[uid]; !already {
			now.count++
			c.kept[uid] = key
		}
	}
}

// drop gives back what a request keeps, and returns the requests that wait for it.
func (c *claims) drop(uid types.UID) []item {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, ok := c.kept[uid]
	if !ok {
		return nil
	}
	delete(c.kept, uid)
	return c.giveBack(key)
}

// release gives a key back and returns the requests that wait for it.
func (c *claims) release(key pki.Fingerprint) []item {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.giveBack(key)
}

// giveBack expects that the lock is held.
func (c *claims) giveBack(key pki.Fingerprint) []item {
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

// awaitSignature claims the key of a request that another signer signs, until its certificate or a failure is seen.
func (c *Controller) awaitSignature(i item, uid types.UID, r policy.Request) {
	if r.ParseError != nil || !c.claims.take(r.CSR.Fingerprint(), r.CSR.CommonName(), i) {
		return // if the key is another's, the request comes again when it is given back
	}
	c.claims.keep(uid, r.CSR.Fingerprint())
	for _, waiting := range c.claims.release(r.CSR.Fingerprint()) {
		c.queue.add(waiting)
	}
}

// takeOverClaim claims what was approved while another replica led, before anything is decided here.
func (c *Controller) takeOverClaim(h *held) {
	csr := h.csr.Load()
	if csr == nil {
		return
	}
	if r := policy.Read(csr, c.config.Policy); r.Phase == policy.Approved {
		c.awaitSignature(h.item, h.uid, r)
	}
}

func (c *Controller) unclaim(uid types.UID) {
	for _, waiting := range c.claims.drop(uid) {
		c.wake(waiting)
	}
}
