// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// A route is of pods and nothing else: what is sent to a machine, the API server or the metadata service goes to nobody
// else, whatever a node says of its pods. With a route of a machine's address another would have the answers that are
// meant for it.
func TestRoutesOfPodsAlone(t *testing.T) {
	n := newNetwork(t)
	newMachine(t, n, firstMachine)
	forger := newMachine(t, n, secondMachine)
	stop := serveMetadata(t, n, directory{netip.MustParseAddr(firstMachine): 1, netip.MustParseAddr(secondMachine): 1})
	defer stop()
	err := withHandle(forger, func(h *netlink.Handle) error {
		link, err := h.LinkByName(machineLink)
		if err != nil {
			return err
		}
		return h.AddrReplace(link, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(firstMachine + "/32"))})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pods := range []string{firstMachine + "/32", "192.168.64.2/32", "192.168.0.0/16", "169.254.169.254/32", "0.0.0.0/0", "127.0.0.0/8", "224.0.0.0/24", "::/0"} {
		if err := n.SetRoute(Route{PodCIDR: netip.MustParsePrefix(pods), Machine: netip.MustParseAddr(secondMachine)}); err == nil {
			t.Errorf("a route to %s was set", pods)
		}
	}
	if routes, err := n.Routes(); err != nil || len(routes) > 0 {
		t.Errorf("routes: %v, %v", routes, err)
	}
	if got, err := tokenOf(forger, firstMachine, 1500*time.Millisecond); err == nil {
		t.Errorf("with another's address and a route to it, a machine got the other's token %q", got)
	}
}
