// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/frontservers"
)

// pool is the servers of a front, with what is known of each.
type pool struct {
	mu      sync.Mutex
	servers []member
	open    map[netip.AddrPort]int // connections, also those to servers that are in the list no more; never 0
	turn    int
	changed chan struct{} // closed when a server becomes ready, or the servers are others
}

// member is a server of a pool.
type member struct {
	frontservers.Server
	ready  bool
	reason string    // why it is not ready
	told   time.Time // when that was told
	asked  bool      // it is being probed
	open   int       // connections, in a snapshot
}

func newPool() *pool { return &pool{open: map[netip.AddrPort]int{}, changed: make(chan struct{})} }

// set replaces the servers. Servers that stay keep their state; a new one is not ready until a probe has said so.
func (p *pool) set(servers []frontservers.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make([]member, 0, len(servers))
	for _, s := range servers {
		m := member{reason: "not asked yet"}
		if old := p.find(s.Address); old != nil {
			m = *old
		}
		m.Server = s
		next = append(next, m)
	}
	p.servers = next
	p.tell()
}

// tell wakes up connections that wait. The mutex is held.
func (p *pool) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// find is called with the mutex held.
func (p *pool) find(address netip.AddrPort) *member {
	i := slices.IndexFunc(p.servers, func(m member) bool { return m.Address == address })
	if i < 0 {
		return nil
	}
	return &p.servers[i]
}

// toProbe returns the servers that are not being probed, which they are from now on.
func (p *pool) toProbe() (addresses []netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.servers {
		if m := &p.servers[i]; !m.asked {
			m.asked = true
			addresses = append(addresses, m.Address)
		}
	}
	return addresses
}

// probed notes what a probe found; reason is empty for a server that is ready. It reports whether that is to be told: a
// server that is ready or not ready any more is, and another reason once in a while, since reasons have port numbers.
func (p *pool) probed(address netip.AddrPort, reason string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(address)
	if m == nil {
		return false
	}
	m.asked = false
	ready := reason == ""
	if m.ready == ready && (m.reason == reason || now.Sub(m.told) < seldom) {
		return false
	}
	if ready && !m.ready {
		p.tell()
	}
	m.ready, m.reason, m.told = ready, reason, now
	return true
}

// hasReady reports whether a server is ready.
func (p *pool) hasReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.servers, func(m member) bool { return m.ready })
}

// refuses is the reason of a server that refuses connections.
const refuses = "it refuses connections"

// refused notes that a server refuses connections: it is not ready until a probe says so. The process that listens there
// next may accept connections long before it is ready. It reports whether that is to be told.
func (p *pool) refused(address netip.AddrPort, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(address)
	if m == nil || !m.ready {
		return false
	}
	m.ready, m.reason, m.told = false, refuses, now
	return true
}

// choose returns the servers that a new connection is offered to, the best first: ready ones in turn, the one with the
// fewest connections first. ready is false if no server is ready: then all are there that do not drain, and wait is
// closed when that changes.
func (p *pool) choose() (order []netip.AddrPort, ready bool, wait <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var up, rest []member
	for _, m := range p.servers {
		switch {
		case m.Draining:
		case m.ready:
			up = append(up, m)
		default:
			rest = append(rest, m)
		}
	}
	ready = len(up) > 0
	if !ready {
		up = rest
	}
	if len(up) > 1 { // equal ones take turns
		p.turn = (p.turn + 1) % len(up)
		up = append(slices.Clone(up[p.turn:]), up[:p.turn]...)
		slices.SortStableFunc(up, func(a, b member) int { return p.open[a.Address] - p.open[b.Address] })
	}
	for _, m := range up {
		order = append(order, m.Address)
	}
	return order, ready, p.changed
}

// took counts a connection to a server, and returns what ends the count. A server that leaves the list and comes back
// keeps its count.
func (p *pool) took(address netip.AddrPort) func() {
	add := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open[address] += n
		if p.open[address] == 0 {
			delete(p.open, address)
		}
	}
	add(1)
	return func() { add(-1) }
}

// snapshot is a copy of the members.
func (p *pool) snapshot() []member {
	p.mu.Lock()
	defer p.mu.Unlock()
	members := slices.Clone(p.servers)
	for i, m := range members {
		members[i].open = p.open[m.Address]
	}
	return members
}
