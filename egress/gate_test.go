// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/egresspolicy"
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

// A change takes effect within a second (docs/promises.md) whenever it comes: not looking for a whole second would use
// all of that up.
func TestGateLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var policy atomic.Pointer[egresspolicy.Policy]
		before := nat()
		policy.Store(&before)
		g := &gate{
			read: func() (egresspolicy.Policy, []netip.Prefix, error) { return *policy.Load(), nil, nil },
			log:  slog.New(slog.DiscardHandler),
		}
		g.look()
		ctx, stop := context.WithCancel(t.Context())
		changed := make(chan time.Time, 1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			g.follow(ctx, func() { changed <- time.Now() })
		}()
		synctest.Wait()
		began := time.Now()
		policy.Store(&egresspolicy.Policy{})
		if took := (<-changed).Sub(began); took > 500*time.Millisecond {
			t.Errorf("a change was found after %s", took)
		}
		stop()
		<-ended
	})
}
