// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/frontservers"
)

func at(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
}

// Whatever happened before: a ready server that does not drain is offered before all others, no draining server is
// offered, and each server is offered once.
func TestChoose(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := newPool()
		var servers []frontservers.Server
		var ends []func()
		for range random.IntN(40) {
			switch random.IntN(4) {
			case 0:
				servers = nil
				for port := range uint16(random.IntN(4)) {
					servers = append(servers, frontservers.Server{Address: at(port + 1), Draining: random.IntN(3) == 0})
				}
				p.set(servers)
			case 1: // probes
				reason := ""
				if random.IntN(2) == 0 {
					reason = "no"
				}
				p.probed(at(uint16(1+random.IntN(4))), reason, time.Time{})
			case 2:
				if order, _, _ := p.choose(); len(order) > 0 {
					ends = append(ends, p.took(order[0]))
				}
			case 3:
				if len(ends) > 0 {
					ends[0]()
					ends = ends[1:]
				}
			}
		}
		order, ready, _ := p.choose()
		var want []netip.AddrPort
		fewest := -1
		for _, m := range p.snapshot() {
			if m.Draining || m.ready != ready {
				continue
			}
			want = append(want, m.Address)
			if fewest < 0 || m.open < fewest {
				fewest = m.open
			}
		}
		got := slices.Clone(order)
		slices.SortFunc(got, netip.AddrPort.Compare)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: offered %v, want %v of %+v", seed, order, want, p.snapshot())
		}
		if ready && p.open[order[0]] != fewest {
			t.Fatalf("seed %d: %v is offered first of %+v", seed, order[0], p.snapshot())
		}
	}
}

// Servers that stay keep what is known of them, and equal servers take turns.
func TestSet(t *testing.T) {
	p := newPool()
	p.set([]frontservers.Server{{Address: at(1)}, {Address: at(2)}})
	_, _, changed := p.choose()
	if !p.probed(at(1), "", time.Time{}) || p.probed(at(1), "", time.Time{}) || !p.probed(at(2), "", time.Time{}) {
		t.Error("news is not told once")
	}
	select {
	case <-changed:
	default:
		t.Error("nobody is told that a server is ready")
	}
	first, _, _ := p.choose()
	second, _, _ := p.choose()
	if first[0] == second[0] {
		t.Errorf("%v twice", first[0])
	}
	end := p.took(at(1))
	p.set([]frontservers.Server{{Address: at(1), Draining: true}, {Address: at(3)}})
	if order, ready, _ := p.choose(); ready || !slices.Equal(order, []netip.AddrPort{at(3)}) {
		t.Errorf("%v, %v", order, ready)
	}
	if m := p.snapshot()[0]; !m.ready || m.open != 1 {
		t.Errorf("%+v", m)
	}
	end()
}

// Why a server is not ready is told, at once if it was never ready, and other reasons seldom.
func TestReasons(t *testing.T) {
	p := newPool()
	p.set([]frontservers.Server{{Address: at(1)}})
	now := time.Unix(1000, 0)
	for _, probe := range []struct {
		after  time.Duration
		reason string
		want   bool
	}{
		{0, "refused", true},
		{time.Second, "refused", false},
		{time.Second, "bad certificate", false},
		{seldom, "bad certificate", true},
		{seldom, "bad certificate", false},
		{time.Second, "", true},
		{seldom, "", false},
		{time.Second, "refused", true},
	} {
		now = now.Add(probe.after)
		if got := p.probed(at(1), probe.reason, now); got != probe.want {
			t.Errorf("%+v: told: %v", probe, got)
		}
	}
}

// A connection that waits for a server hears of other servers, and of a server that drains no more.
func TestOtherServersWakeConnections(t *testing.T) {
	p := newPool()
	p.set([]frontservers.Server{{Address: at(1), Draining: true}})
	p.probed(at(1), "", time.Time{})
	_, ready, changed := p.choose()
	if ready {
		t.Error("a server that drains is chosen")
	}
	p.set([]frontservers.Server{{Address: at(1)}})
	select {
	case <-changed:
	default:
		t.Error("nobody is told")
	}
	if _, ready, _ := p.choose(); !ready {
		t.Error("the server is not chosen")
	}
}

// A connection to a server that has left the list is counted to its end, whether or not the server comes back.
func TestCountsOfServersThatComeBack(t *testing.T) {
	p := newPool()
	both := []frontservers.Server{{Address: at(1)}, {Address: at(2)}}
	p.set(both)
	ends := []func(){p.took(at(1)), p.took(at(1))}
	p.set(both[1:])
	ends[0]()
	p.set(both)
	if got := p.snapshot()[0].open; got != 1 {
		t.Errorf("%d connections are open, want 1", got)
	}
	ends[1]()
	if got := p.snapshot()[0].open; got != 0 || len(p.open) > 0 {
		t.Errorf("%d connections are open, %v; want none", got, p.open)
	}
}
