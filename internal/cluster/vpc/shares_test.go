// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"net/netip"
	"testing"
)

// However many machines' pods take all connections to an API server that they get, another machine, and the API server itself, get some.
func TestMachinesShareAnAPIServer(t *testing.T) {
	d := &door{slots: make(chan struct{}, maxConnections)}
	shares := d.shares()
	machine := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}) }
	take := func(n int, itself bool) bool {
		if len(d.slots) == cap(d.slots) || !shares.take(machine(n), itself) {
			return false
		}
		d.slots <- struct{}{}
		return true
	}
	for range maxPerMachine {
		take(0, true)
	}
	if len(d.slots) < maxPerMachine/2 {
		t.Errorf("a machine alone gets %d connections", len(d.slots))
	}
	for range maxPerMachine {
		for n := range 30 {
			take(n, false)
		}
	}
	for n := range 50 {
		if !take(1000, true) {
			t.Fatalf("with %d connections of the pods of 30 machines, another machine gets %d", len(d.slots), n)
		}
	}
}

// What pods took while much was left keeps their machine out no more than what they take later.
func TestPodsDoNotKeepTheirMachineOut(t *testing.T) {
	d := &door{slots: make(chan struct{}, maxConnections)}
	shares := d.shares()
	machine := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
	take := func(n byte, itself bool) bool {
		if !shares.take(machine(n), itself) {
			return false
		}
		d.slots <- struct{}{}
		return true
	}
	const machines = 8
	for n := range byte(machines) { // one after the other: the first has more than its limit in the end
		for take(n, false) {
		}
	}
	for n := range byte(machines) {
		got := 0
		for range 32 {
			if take(n, true) {
				got++
			}
		}
		if got < 32 {
			t.Errorf("with %d of %d connections taken by pods, machine %d gets %d of its own", len(d.slots), cap(d.slots), n, got)
		}
	}
	for n := range byte(machines) {
		for range 32 {
			shares.give(machine(n), true)
		}
		for shares.taken[machine(n)].all > 0 {
			shares.give(machine(n), false)
		}
	}
	if len(shares.taken) > 0 {
		t.Errorf("shares of machines without connections are remembered: %v", shares.taken)
	}
}

// Whoever has the API server connect to pods as often as it can keeps no machine from the API server.
func TestCallsLeaveRoomForMachines(t *testing.T) {
	d := &door{slots: make(chan struct{}, maxConnections)}
	shares, calls := d.shares(), 0
	for d.takeCall() {
		calls++
	}
	if calls < maxConnections/2 {
		t.Errorf("the API server alone gets %d connections", calls)
	}
	machine := netip.MustParseAddr("10.0.0.1")
	for n := range 50 {
		if len(d.slots) == cap(d.slots) || !shares.take(machine, true) {
			t.Fatalf("with %d connections of the API server, a machine gets %d", calls, n)
		}
		d.slots <- struct{}{}
	}
	d.giveCall()
	if !d.takeCall() || d.takeCall() || int(d.calls.Load()) != calls {
		t.Errorf("%d places are counted of %d", d.calls.Load(), calls)
	}
}
