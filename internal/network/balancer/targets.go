// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/platform/lru"
)

const (
	// avoidedFor is how long a target that did not take a connection is the second choice.
	avoidedFor = 2 * time.Second
	// maxFails is how many checks in a row a target fails before it is unhealthy. One passed check makes it healthy
	// again.
	maxFails = 2
	// maxClients is how many client addresses keep their target.
	maxClients = 65536
)

// targets are those of one listener, with what is known of each.
type targets struct {
	now func() time.Time

	mutex    sync.Mutex
	list     []*target // sorted by address
	turn     int
	affinity time.Duration
	clients  *lru.Map[netip.Addr, kept]
}

// target is one of them. The mutex of targets guards it.
type target struct {
	address  netip.AddrPort
	draining bool
	fails    int // checks in a row
	reason   string
	avoided  time.Time // until then it is the second choice
}

// kept is the target that a client keeps.
type kept struct {
	target netip.AddrPort
	until  time.Time
}

func newTargets(now func() time.Time) *targets {
	return &targets{now: now, clients: lru.New[netip.Addr, kept](maxClients)}
}

// set replaces the targets. Targets that stay keep their state.
func (t *targets) set(list []loadbalancer.Target, affinity time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	replaced := make([]*target, 0, len(list))
	for _, wanted := range list {
		at := slices.IndexFunc(t.list, func(o *target) bool { return o.address == wanted.Address })
		one := &target{address: wanted.Address}
		if at >= 0 {
			one = t.list[at]
		}
		one.draining = wanted.Draining
		replaced = append(replaced, one)
	}
	t.list, t.affinity = replaced, affinity
}

// choose lists the targets in the order in which a connection of a client is to try them. Healthy targets that took
// their last connection come first, then healthy targets that did not, then targets that fail their checks, then
// draining targets.
func (t *targets) choose(client netip.Addr) []netip.AddrPort {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	now := t.now()
	var preferred netip.AddrPort
	if t.affinity > 0 {
		if k, ok := t.clients.Get(client); ok && now.Before(k.until) {
			preferred = k.target
		}
	}
	type ranked struct {
		address netip.AddrPort
		rank    int
		order   uint64
	}
	all := make([]ranked, 0, len(t.list))
	for i, one := range t.list {
		r := ranked{address: one.address, rank: one.rank(now), order: uint64((i - t.turn%len(t.list) + len(t.list)) % len(t.list))} //nolint:gosec // G115: not negative
		if t.affinity > 0 {
			r.order = mix(client, one.address) // the same for a client, whatever happens to this process
		}
		if one.address == preferred && r.rank <= rankAvoided {
			r.rank = -1
		}
		all = append(all, r)
	}
	t.turn++
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.order, b.order)) })
	order := make([]netip.AddrPort, 0, len(all))
	for _, r := range all {
		order = append(order, r.address)
	}
	return order
}

// The ranks of targets, the best first.
const (
	rankGood = iota
	rankAvoided
	rankUnhealthy
	rankDraining
)

func (one *target) rank(now time.Time) int {
	switch {
	case one.draining:
		return rankDraining
	case one.fails >= maxFails:
		return rankUnhealthy
	case now.Before(one.avoided):
		return rankAvoided
	}
	return rankGood
}

// mix orders targets for a client (highest random weight): when one goes, only its clients go elsewhere.
func mix(client netip.Addr, target netip.AddrPort) uint64 {
	sum := fnv.New64a()
	a, b := client.As16(), target.Addr().As16()
	_, _ = sum.Write(a[:])
	_, _ = sum.Write(b[:])
	_, _ = sum.Write(binary.BigEndian.AppendUint16(nil, target.Port()))
	x := sum.Sum64() // of which similar inputs differ in few bits: see splitmix64's finalizer
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// took notes that a target took a connection of a client.
func (t *targets) took(client netip.Addr, address netip.AddrPort) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if one := t.find(address); one != nil {
		one.avoided = time.Time{}
	}
	if t.affinity > 0 {
		t.clients.Put(client, kept{target: address, until: t.now().Add(t.affinity)})
	}
}

// refused notes that a target did not take a connection.
func (t *targets) refused(address netip.AddrPort, reason string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if one := t.find(address); one != nil {
		one.avoided, one.reason = t.now().Add(avoidedFor), reason
	}
}

// checked notes the outcome of a check; reason is empty if it passed.
func (t *targets) checked(address netip.AddrPort, reason string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	one := t.find(address)
	switch {
	case one == nil:
	case reason == "":
		one.fails, one.reason, one.avoided = 0, "", time.Time{}
	default:
		one.fails, one.reason = one.fails+1, reason
	}
}

// find is called with the mutex held.
func (t *targets) find(address netip.AddrPort) *target {
	for _, one := range t.list {
		if one.address == address {
			return one
		}
	}
	return nil
}

// toCheck are the targets that checks are about.
func (t *targets) toCheck() []netip.AddrPort {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var all []netip.AddrPort
	for _, one := range t.list {
		if !one.draining {
			all = append(all, one.address)
		}
	}
	return all
}

// has reports whether a target is listed.
func (t *targets) has(address netip.AddrPort) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.find(address) != nil
}

// status is what people see of the targets.
func (t *targets) status() []TargetStatus {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	all := make([]TargetStatus, 0, len(t.list))
	for _, one := range t.list {
		s := TargetStatus{Address: one.address, State: Healthy}
		switch {
		case one.draining:
			s.State = Draining
		case one.fails >= maxFails:
			s.State, s.Reason = Unhealthy, one.reason
		}
		all = append(all, s)
	}
	return all
}
