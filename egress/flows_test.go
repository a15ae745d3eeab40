// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"testing"
)

var (
	machineA, machineB = netip.MustParseAddr("172.31.0.5"), netip.MustParseAddr("172.31.0.6")
	podA               = netip.MustParseAddr("10.244.0.9")
)

// A machine's pods cannot take all that is its own, and no machine all there is.
func TestFlowsAreShared(t *testing.T) {
	f := newFlows(limits{machine: 8, total: 12})
	taken := map[netip.Addr][]*flow{}
	take := func(machine, source netip.Addr) bool {
		own := &flow{machine: machine, destination: source, end: func() {}}
		if !f.take(own, source) {
			return false
		}
		taken[source] = append(taken[source], own)
		return true
	}
	for take(machineA, podA) {
	}
	if n := len(taken[podA]); n != 6 {
		t.Errorf("pods have %d of 8", n)
	}
	for take(machineA, machineA) {
	}
	if n := len(taken[machineA]); n != 2 {
		t.Errorf("the machine has %d more", n)
	}
	for take(machineB, machineB) {
	}
	if n := len(taken[machineB]); n != 4 || f.size() != 12 {
		t.Errorf("another machine has %d, %d in all", n, f.size())
	}
	for range 2 { // twice changes nothing
		f.give(taken[podA][0])
	}
	if !take(machineB, machineB) || take(machineA, machineA) {
		t.Error("what was given back did not go to another one")
	}
	for _, all := range taken {
		for _, own := range all {
			f.give(own)
		}
	}
	if len(f.count) != 0 || len(f.all) != 0 {
		t.Errorf("left: %v, %v", f.count, f.all)
	}
}

func TestEndIf(t *testing.T) {
	f := newFlows(limits{machine: 8, total: 8})
	ended := map[netip.Addr]bool{}
	for _, destination := range []netip.Addr{machineA, machineB} {
		f.take(&flow{machine: podA, destination: destination, end: func() { ended[destination] = true }}, podA)
	}
	f.endIf(func(destination netip.Addr) bool { return destination == machineB })
	if ended[machineA] || !ended[machineB] {
		t.Errorf("ended: %v", ended)
	}
}

// Sockets never run out before limits do.
func TestLimitsFitOpenFiles(t *testing.T) {
	whole := defaultLimits()
	if got := whole.within(1 << 20); got != whole {
		t.Errorf("many files: %+v", got)
	}
	for _, files := range []uint64{1024, 4096, 20000} {
		l := whole.within(files)
		if sum := l.halfOpen.total + l.connections.total + l.datagrams.total + l.echoes.total; sum < 4 || uint64(sum) > files {
			t.Errorf("%d files: %d flows", files, sum)
		}
		for _, one := range []limits{l.halfOpen, l.connections, l.datagrams, l.echoes} {
			if one.machine < 1 || one.machine > one.total {
				t.Errorf("%d files: %+v", files, one)
			}
		}
	}
}
