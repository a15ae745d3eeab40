// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWatchOfAnAddressThatIsGone(t *testing.T) {
	w := newWatched(t)
	w.certificate("client", 20*time.Hour)
	w.certificate("server", 20*time.Hour)
	w.interfaces = func() ([]net.Addr, error) { return addresses("127.0.0.1/8", "192.168.64.12/18", "fe80::1/64"), nil }
	w.expect("Address", "and the machine has [192.168.64.12]")
	w.NodeIP = func() netip.Addr { return netip.MustParseAddr("192.168.64.12") }
	w.expect("ServingAddress", "for [192.168.64.11] and not for 192.168.64.12")
	w.NodeIP = func() netip.Addr { return netip.Addr{} } // it chooses by itself: it follows by itself, too
	w.notices.open = map[string]Notice{}
	w.expectNothing()
}

// An address that was assigned is taken over, the kubelet starts again, and the cluster is told. If no address was
// assigned, the agent asks for it now and then.
func TestWatchTakesOverAnotherAddress(t *testing.T) {
	w := newWatched(t)
	w.certificate("client", 20*time.Hour)
	w.certificate("server", 20*time.Hour)
	told, asked := netip.MustParseAddr("192.168.64.11"), 0
	w.NodeIP = func() netip.Addr { return told }
	w.interfaces = func() ([]net.Addr, error) { return addresses("192.168.64.12/18"), nil }
	answer := ErrNotAssigned
	w.Readdress = func(_ context.Context, old netip.Addr) (netip.Addr, error) {
		asked++
		if old != told {
			t.Errorf("it says that it had %s", old)
		}
		if answer == nil {
			told = netip.MustParseAddr("192.168.64.12")
		}
		return told, answer
	}
	w.expect("Address", "nobody has assigned the machine another address")
	for range 2 * askAgainEvery {
		w.look(t.Context())
	}
	if asked != 3 || w.restarts != 0 {
		t.Errorf("in %d looks it asked %d times, and restarted the kubelet %d times", 3+2*askAgainEvery, asked, w.restarts)
	}
	answer = nil
	for range askAgainEvery + 2 {
		w.look(t.Context())
	}
	if w.restarts != 1 || len(w.posted) == 0 || w.posted[0].Reason != "Address" || !w.posted[0].Warning {
		t.Errorf("%d restarts; the cluster was told %+v", w.restarts, w.posted)
	}
	if i := slices.IndexFunc(w.posted, func(e event) bool { return e.Reason == "AddressChanged" }); i < 0 || w.posted[i].Warning || !strings.Contains(w.posted[i].Text, "was 192.168.64.11 and is 192.168.64.12") {
		t.Errorf("the cluster was told %+v", w.posted)
	}
	if open, err := ReadNotices(w.Notices); err != nil || len(open) != 1 || open[0].Code != "ServingAddress" { // until the kubelet has another
		t.Errorf("the notices are %v (%v)", open, err)
	}
}
