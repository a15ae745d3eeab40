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
