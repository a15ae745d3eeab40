// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"sync"
)

// limits bound the flows of one kind.
type limits struct {
	machine int // flows of one machine with its pods
	total   int
}

// fraction of what is left that one machine may have: of N that take all they get, each has total/(N+fraction), and one
// more gets as much.
const fraction = 8

// share counts the flows of a machine: all of them, with its pods', and its own.
type share struct{ all, itself int }

// flow is a connection, or what answers to datagrams come by.
type flow struct {
	machine, destination netip.Addr
	// end ends it, from any goroutine, and more than once.
	end func()
	// nth is the number of flows that its machine had once this flow was added.
	nth int
	// itself reports whether it is the machine's and not a pod's.
	itself bool
}

// flows are all of one kind.
type flows struct {
	limits limits

	mutex sync.Mutex
	count map[netip.Addr]share
	all   map[*flow]struct{}
}

func newFlows(l limits) *flows {
	return &flows{limits: l, count: map[netip.Addr]share{}, all: map[*flow]struct{}{}}
}

// take adds a flow, unless its machine has its limit already. A quarter of that is the machine's own and not for its
// pods: what they take must not keep the machine itself in, even if they took it when more was left and the limit was
// higher.
func (f *flows) take(own *flow, source netip.Addr) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	left := f.limits.total - len(f.all)
	limit, has := min(f.limits.machine, max(1, left/fraction)), f.count[own.machine]
	itself := source == own.machine
	switch {
	case left == 0:
		return false
	case !itself && has.all >= limit*3/4:
		return false
	case itself && has.all >= limit && has.itself >= max(1, limit/4):
		return false
	}
	has.all++
	if own.itself = itself; itself {
		has.itself++
	}
	f.count[own.machine], own.nth = has, has.all
	f.all[own] = struct{}{}
	return true
}

// give removes a flow, once.
func (f *flows) give(own *flow) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if _, there := f.all[own]; !there {
		return
	}
	delete(f.all, own)
	has := f.count[own.machine]
	if has.all--; own.itself {
		has.itself--
	}
	if f.count[own.machine] = has; has.all == 0 {
		delete(f.count, own.machine)
	}
}

// size is how many there are.
func (f *flows) size() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.all)
}

// endIf ends those whose destination is not allowed any more.
func (f *flows) endIf(refused func(netip.Addr) bool) {
	f.mutex.Lock()
	var over []*flow
	for own := range f.all {
		over = append(over, own)
	}
	f.mutex.Unlock()
	for _, own := range over {
		if refused(own.destination) {
			own.end()
		}
	}
}
