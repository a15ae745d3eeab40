// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"sync"
)

// limits bound the flows of one kind.
type limits struct {
	machine int // those of one machine with its pods
	total   int
}

// flow is a connection, or what answers to datagrams come by.
type flow struct {
	machine, destination netip.Addr
	// end ends it, from any goroutine, and more than once.
	end func()
	// nth is how many its machine had when it was taken, itself among them.
	nth int
}

// flows are all of one kind.
type flows struct {
	limits limits

	mutex sync.Mutex
	count map[netip.Addr]int
	all   map[*flow]struct{}
}

func newFlows(l limits) *flows {
	return &flows{limits: l, count: map[netip.Addr]int{}, all: map[*flow]struct{}{}}
}

// take adds a flow, unless its machine has its limit already. A quarter of that is not for the machine's pods: what they take must not keep
// the machine itself in.
func (f *flows) take(own *flow, source netip.Addr) bool {
	limit := f.limits.machine
	if source != own.machine {
		limit -= limit / 4
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.count[own.machine] >= limit || len(f.all) >= f.limits.total {
		return false
	}
	f.count[own.machine]++
	own.nth = f.count[own.machine]
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
	if f.count[own.machine]--; f.count[own.machine] == 0 {
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
