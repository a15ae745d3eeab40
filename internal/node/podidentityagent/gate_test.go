// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"net/netip"
	"testing"
)

// However many pods of a machine take all connections that they get, one more pod gets some.
func TestPodsShareConnections(t *testing.T) {
	c := &connections{open: map[netip.Addr]int{}}
	pod := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
	for range maxPerAddress {
		c.take(pod(0))
	}
	if c.all != maxPerAddress {
		t.Errorf("a pod alone gets %d connections", c.all)
	}
	const pods = 110
	for range maxPerAddress {
		for n := range byte(pods) {
			c.take(pod(n))
		}
	}
	for n := range 16 {
		if !c.take(pod(pods)) {
			t.Fatalf("with %d connections of %d pods, another one gets %d", c.all, pods, n)
		}
	}
	for address, open := range c.open {
		for range open {
			c.give(address)
		}
	}
	if c.all != 0 || len(c.open) > 0 {
		t.Errorf("%d connections are left, %v", c.all, c.open)
	}
}
