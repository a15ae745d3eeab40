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

// A machine's pods cannot take all that is its own, and however many machines take what they get, each gets out itself,
// and so does one more.
func TestFlowsAreShared(t *testing.T) {
	for _, l := range []limits{defaultLimits().halfOpen, defaultLimits().connections, defaultLimits().datagrams, defaultLimits().echoes} {
		f := newFlows(l)
		taken := map[netip.Addr][]*flow{}
		take := func(machine, source netip.Addr) bool {
			own := &flow{machine: machine, destination: source, end: func() {}}
			if !f.take(own, source) {
				return false
			}
			taken[source] = append(taken[source], own)
			return true
		}
		var machines []netip.Addr
		for machine := machineA; len(machines) < 30; machine = machine.Next() {
			machines = append(machines, machine)
			for take(machine, podA) {
			}
		}
		for _, machine := range append(machines, machines[29].Next()) {
			if !take(machine, machine) {
				t.Errorf("%+v: the pods of 30 machines keep %s in", l, machine)
			}
		}
		for _, all := range taken {
			for range 2 { // twice changes nothing
				for _, own := range all {
					f.give(own)
				}
			}
		}
		if len(f.count) != 0 || len(f.all) != 0 {
			t.Fatalf("left: %v, %v", f.count, f.all)
		}
		clear(taken)
		for take(machineA, podA) {
		}
		pods := len(taken[podA])
		for take(machineA, machineA) {
		}
		if all := f.size(); all > l.machine || all < l.total/(fraction+1) && all < l.machine || pods*100 > all*77 {
			t.Errorf("%+v: a machine alone has %d, %d of them its pods'", l, all, pods)
		}
	}
}

func TestEndIf(t *testing.T) {
	f := newFlows(limits{machine: 8, total: 80})
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
