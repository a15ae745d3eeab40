// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"net/netip"
	"testing"
)

// node is a machine, and podOn a pod of it.
func node(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}) }

func podOn(machine, n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 1 + byte(n), byte(machine >> 8), byte(machine)})
}

// peer is a machine itself, or the first of its pods.
func peer(machine int, itself bool) netip.Addr {
	if itself {
		return node(machine)
	}
	return podOn(machine, 0)
}

// However many machines' pods take all connections to an API server that they get, another machine, and the API server
// itself, get some.
func TestMachinesShareAnAPIServer(t *testing.T) {
	d := &door{slots: make(chan struct{}, maxConnections)}
	shares := d.shares()
	from := func(n int, peer netip.Addr) bool {
		if len(d.slots) == cap(d.slots) || !shares.take(node(n), peer) {
			return false
		}
		d.slots <- struct{}{}
		return true
	}
	for range maxPerMachine {
		from(0, node(0))
	}
	if len(d.slots) < maxPerMachine/2 {
		t.Errorf("a machine alone gets %d connections", len(d.slots))
	}
	for range maxPerMachine {
		for n := range 30 {
			for pod := range 64 {
				from(n, podOn(n, pod))
			}
		}
	}
	for n := range 50 {
		if !from(1000, node(1000)) {
			t.Fatalf("with %d connections of the pods of 30 machines, another machine gets %d", len(d.slots), n)
		}
	}
}

// Connections that pods took while much was left do not keep their machine out, no more than connections that they take
// later.
func TestPodsDoNotKeepTheirMachineOut(t *testing.T) {
	d := &door{slots: make(chan struct{}, maxConnections)}
	shares := d.shares()
	from := func(n int, peer netip.Addr) bool {
		if !shares.take(node(n), peer) {
			return false
		}
		d.slots <- struct{}{}
		return true
	}
	const machines, pods = 8, 200
	for n := range machines { // in sequence: the first has more than its limit in the end
		for pod := range pods {
			for from(n, podOn(n, pod)) {
			}
		}
	}
	for n := range machines {
		got := 0
		for range 32 {
			if from(n, node(n)) {
				got++
			}
		}
		if got < 32 {
			t.Errorf("with %d of %d connections taken by pods, machine %d gets %d of its own", len(d.slots), cap(d.slots), n, got)
		}
	}
	for n := range machines {
		for range 32 {
			shares.give(node(n), node(n))
		}
		for pod := range pods {
			for has := shares.taken[node(n)]; has != nil && has.pods[podOn(n, pod)] > 0; {
				shares.give(node(n), podOn(n, pod))
			}
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
	for n := range 50 {
		if len(d.slots) == cap(d.slots) || !shares.take(node(1), node(1)) {
			t.Fatalf("with %d connections of the API server, a machine gets %d", calls, n)
		}
		d.slots <- struct{}{}
	}
	d.giveCall()
	if !d.takeCall() || d.takeCall() || int(d.calls.Load()) != calls {
		t.Errorf("%d places are counted of %d", d.calls.Load(), calls)
	}
}

// However many pods of a machine take all connections to an API server that they get, one more pod gets some: one that
// takes 700 cuts no other off.
func TestPodsShareAnAPIServer(t *testing.T) {
	d := &door{slots: make(chan struct{}, maxConnections)}
	shares := d.shares()
	take := func(pod int) bool {
		if len(d.slots) == cap(d.slots) || !shares.take(node(0), podOn(0, pod)) {
			return false
		}
		d.slots <- struct{}{}
		return true
	}
	for range 700 {
		take(0)
	}
	if alone := len(d.slots); alone < 40 || alone > maxPerMachine/8 {
		t.Errorf("a pod alone gets %d connections", alone)
	}
	const pods = 20
	for range 700 {
		for pod := range pods {
			take(pod)
		}
	}
	for n := range 8 {
		if !take(pods) {
			t.Fatalf("with %d connections of %d pods, another one gets %d", len(d.slots), pods, n)
		}
	}
	more := 0
	for take(pods + 1 + more) {
		more++
	}
	if more < 50 {
		t.Errorf("beside %d pods that take all they get, %d get one connection each", pods, more)
	}
}
