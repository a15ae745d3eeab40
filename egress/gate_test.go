// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/cluster/egresspolicy"
)

func TestGate(t *testing.T) {
	policy, own := nat(), []netip.Prefix{testCIDR}
	var failure, lookup error
	kind := unix.RTN_UNICAST
	g := &gate{
		read: func() (egresspolicy.Policy, []netip.Prefix, error) { return policy, own, failure },
		kind: func(netip.Addr) (int, error) { return kind, lookup }, log: slog.New(slog.DiscardHandler),
	}
	check := func(when, address string, want egresspolicy.Refusal) {
		t.Helper()
		if got := g.refuse(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %s: %q, want %q", when, address, got, want)
		}
	}
	check("nothing was read", "1.1.1.1", egresspolicy.RefusedClosed)
	failure = errors.New("input/output error")
	if g.look() {
		t.Error("what cannot be read has changed")
	}
	check("nothing could be read", "1.1.1.1", egresspolicy.RefusedClosed)
	failure = nil
	if g.look() {
		t.Error("the first look is a change")
	}
	check("read", "1.1.1.1", "")
	check("read", "::ffff:1.1.1.1", "")
	check("read", "172.31.0.9", egresspolicy.RefusedVPC)
	for k, want := range map[int]egresspolicy.Refusal{
		unix.RTN_LOCAL: egresspolicy.RefusedHost, unix.RTN_BROADCAST: egresspolicy.RefusedReserved, unix.RTN_MULTICAST: egresspolicy.RefusedReserved,
		unix.RTN_UNREACHABLE: egresspolicy.RefusedReserved, 0: egresspolicy.RefusedReserved,
	} {
		kind = k
		check("another kind of route", "1.1.1.1", want)
	}
	kind, lookup = unix.RTN_UNICAST, unix.ENETUNREACH
	check("no route", "1.1.1.1", refusedNoRoute)
	lookup = nil
	policy.Denied = []netip.Prefix{netip.MustParsePrefix("1.1.1.0/24")}
	if !g.look() || g.look() {
		t.Error("a change is seen wrongly")
	}
	check("denied", "1.1.1.1", egresspolicy.RefusedDenied)
	own = append(own, netip.MustParsePrefix("9.9.9.0/24"))
	if !g.look() {
		t.Error("a change of the VPC's ranges is not seen")
	}
	check("pods", "9.9.9.9", egresspolicy.RefusedVPC)
	failure = errors.New("input/output error")
	g.look()
	check("it cannot be read any more", "1.1.1.1", egresspolicy.RefusedDenied)
}
