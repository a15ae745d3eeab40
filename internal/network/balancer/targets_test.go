// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/network/loadbalancer"
)

var (
	one, two, three = netip.MustParseAddrPort("10.244.0.1:80"), netip.MustParseAddrPort("10.244.0.2:80"), netip.MustParseAddrPort("10.244.0.3:80")
	alice           = netip.MustParseAddr("172.31.0.5")
)

// ready are targets that take connections.
func ready(all ...netip.AddrPort) []loadbalancer.Target {
	targets := make([]loadbalancer.Target, 0, len(all))
	for _, a := range all {
		targets = append(targets, loadbalancer.Target{Address: a})
	}
	return targets
}

// clocked are targets with a clock that the test sets.
func clocked() (*targets, *time.Time) {
	now := time.Unix(1_000_000, 0)
	return newTargets(func() time.Time { return now }), &now
}

func TestTargetsTakeTurns(t *testing.T) {
	all, _ := clocked()
	all.set(ready(one, two, three), 0)
	count := map[netip.AddrPort]int{}
	for range 300 {
		order := all.choose(alice)
		if len(order) != 3 {
			t.Fatal(order)
		}
		count[order[0]]++
	}
	for _, target := range []netip.AddrPort{one, two, three} {
		if count[target] != 100 {
			t.Errorf("%v", count)
		}
	}
	all.set(nil, 0)
	if order := all.choose(alice); len(order) != 0 {
		t.Error(order)
	}
}

func TestTheBestTargetComesFirst(t *testing.T) {
	all, now := clocked()
	all.set(append(ready(one, two), loadbalancer.Target{Address: three, Draining: true}), 0)
	first := func(want netip.AddrPort, when string) {
		t.Helper()
		for range 5 {
			if got := all.choose(alice); got[0] != want || got[2] != three {
				t.Fatalf("%s: %v, want %s first and %s last", when, got, want, three)
			}
		}
	}
	all.refused(one, "connection refused")
	first(two, "after a refusal")
	*now = now.Add(avoidedFor)
	all.checked(one, "timeout")
	if all.status()[0].State != Healthy {
		t.Error("one failure is not enough")
	}
	all.checked(one, "timeout")
	if got := all.status()[0]; got.State != Unhealthy || got.Reason != "timeout" {
		t.Error(got)
	}
	first(two, "after two checks that failed")
	all.refused(two, "connection refused")
	first(two, "a refusal is less than failed checks")
	all.checked(two, "timeout")
	all.checked(two, "timeout")
	if got := all.choose(alice); got[2] != three {
		t.Errorf("all fail, and those that drain are before them: %v", got)
	}
	all.set(append(ready(one, two), loadbalancer.Target{Address: three, Draining: true}), 0)
	if all.status()[0].State != Unhealthy {
		t.Error("what was known of a target that stays is forgotten")
	}
	all.checked(one, "")
	first(one, "after a check that passed")
	if got := all.toCheck(); slices.Contains(got, three) || len(got) != 2 {
		t.Errorf("checked are %v", got)
	}
}

func TestClientsKeepTheirTarget(t *testing.T) {
	all, now := clocked()
	all.set(ready(one, two, three), time.Minute)
	hers := all.choose(alice)[0]
	all.took(alice, hers)
	again, _ := clocked()
	again.set(ready(one, two, three), time.Minute)
	if got := again.choose(alice)[0]; got != hers {
		t.Errorf("%s, and %s after the process was started again", hers, got)
	}
	rest := slices.DeleteFunc([]netip.AddrPort{one, two, three}, func(a netip.AddrPort) bool { return a == hers })
	all.set(ready(rest...), time.Minute)
	other := all.choose(alice)[0]
	all.took(alice, other)
	all.set(ready(one, two, three), time.Minute)
	*now = now.Add(59 * time.Second)
	if got := all.choose(alice)[0]; got != other {
		t.Errorf("her target is %s, not %s that took her last", got, other)
	}
	*now = now.Add(time.Second)
	if got := all.choose(alice)[0]; got != hers {
		t.Errorf("after the time is over: %s, not %s", got, hers)
	}
	all.took(alice, other)
	all.set([]loadbalancer.Target{{Address: other, Draining: true}, {Address: hers}}, time.Minute)
	if got := all.choose(alice)[0]; got != hers {
		t.Errorf("a target that drains is kept: %s", got)
	}
	spread := map[netip.AddrPort]bool{}
	for i := range 64 {
		spread[again.choose(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))[0]] = true
	}
	if len(spread) != 3 {
		t.Errorf("64 clients are at %v", spread)
	}
}

// Every target is tried, each once, whatever happened to it.
func TestEveryTargetIsTriedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, now := clocked()
		var list []loadbalancer.Target
		for i := range rapid.IntRange(0, 6).Draw(t, "targets") {
			list = append(list, loadbalancer.Target{Address: netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:80", i)), Draining: rapid.Bool().Draw(t, "draining")})
		}
		all.set(list, rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "affinity"))
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			*now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second)
			order := all.choose(alice)
			if sorted := slices.Compact(slices.SortedFunc(slices.Values(order), netip.AddrPort.Compare)); len(sorted) != len(list) || len(order) != len(list) {
				t.Fatalf("%v of %v", order, list)
			}
			if len(order) == 0 {
				return
			}
			draining := func(a netip.AddrPort) bool {
				return list[slices.IndexFunc(list, func(o loadbalancer.Target) bool { return o.Address == a })].Draining
			}
			if draining(order[0]) && !draining(order[len(order)-1]) {
				t.Fatalf("%v begins with one that drains", order)
			}
			switch at := rapid.SampledFrom(order).Draw(t, "target"); rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				all.took(alice, at)
			case 1:
				all.refused(at, "refused")
			case 2:
				all.checked(at, "timeout")
			case 3:
				all.checked(at, "")
			}
		}
	})
}
