// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
)

var (
	cidr    = netip.MustParsePrefix("192.168.64.0/18")
	podCIDR = netip.MustParsePrefix("10.244.0.0/16")
	subnets = []netip.Prefix{netip.MustParsePrefix("192.168.64.0/20"), netip.MustParsePrefix("192.168.96.0/20")}
)

const vpcID = "vpc-0123456789abcdef0"

func TestNetworkOutlivesEverybodyAndGoes(t *testing.T) {
	n := newNetwork(t)
	first, err := os.Stat(n.mount())
	if err != nil {
		t.Fatal(err)
	}
	again, err := New(Config{Dir: n.dir, CIDR: cidr, Subnets: subnets})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Ensure(); err != nil {
		t.Fatal(err)
	}
	second, err := os.Stat(n.mount())
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(first, second) {
		t.Error("the second Ensure made another namespace")
	}
	for range 2 {
		if err := n.Delete(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(n.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), n.dir) {
		t.Errorf("a mount is left: %v", err)
	}
	// As after a reboot: the file is there, the mount is not.
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.mount(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Open(); err == nil {
		t.Error("an empty file passed for a namespace")
	}
	if err := n.Ensure(); err != nil {
		t.Error(err)
	}
}

func TestMachinesReachEachOther(t *testing.T) {
	n := newNetwork(t)
	first, second := newMachine(t, n, "192.168.64.11"), newMachine(t, n, "192.168.64.12")
	echo(t, listenIn(t, first, "192.168.64.11:8080"))
	connection, err := dialIn(t, second, "192.168.64.11:8080")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := tell(connection, 3); err != nil || answer != "heard 3 bytes" {
		t.Errorf("%q, %v", answer, err)
	}

	if links, err := n.Attached(); err != nil || len(links) != 2 {
		t.Errorf("links: %v, %v", links, err)
	}
	for range 2 {
		if err := n.Detach(netip.MustParseAddr("192.168.64.12")); err != nil {
			t.Fatal(err)
		}
	}
	if links, err := n.Attached(); err != nil || len(links) != 1 || links[0].Link() != "vm-c0a8400b" {
		t.Errorf("links after Detach: %v, %v", links, err)
	}
	if err := n.Attach(second, interfaceOf("10.0.0.1")); err == nil {
		t.Error("an address outside the VPC was assigned")
	}
}

// Pods on one machine reach those on another by the routes, and only by them.
func TestRoutes(t *testing.T) {
	n := newNetwork(t)
	first, second := newMachine(t, n, "192.168.64.11"), newMachine(t, n, "192.168.64.12")
	pods := netip.MustParsePrefix("10.244.1.0/24")
	err := withHandle(first, func(h *netlink.Handle) error { // a pod's address on the first machine
		lo, err := h.LinkByName("lo")
		if err != nil {
			return err
		}
		return h.AddrReplace(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("10.244.1.5/32"))})
	})
	if err != nil {
		t.Fatal(err)
	}
	echo(t, listenIn(t, first, "10.244.1.5:80"))
	if _, err := dialIn(t, second, "10.244.1.5:80"); err == nil {
		t.Fatal("a pod was reached without a route")
	}
	for _, machine := range []string{"192.168.64.12", "192.168.64.11", "192.168.64.11"} {
		if err := n.SetRoute(Route{PodCIDR: pods, Machine: netip.MustParseAddr(machine)}); err != nil {
			t.Fatal(err)
		}
	}
	routes, err := n.Routes()
	if err != nil || len(routes) != 1 || routes[0] != (Route{PodCIDR: pods, Machine: netip.MustParseAddr("192.168.64.11")}) {
		t.Errorf("routes: %v, %v", routes, err)
	}
	connection, err := dialIn(t, second, "10.244.1.5:80")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := tell(connection, 1); err != nil || answer != "heard 1 bytes" {
		t.Errorf("%q, %v", answer, err)
	}
	for range 2 {
		if err := n.DeleteRoute(pods); err != nil {
			t.Fatal(err)
		}
	}
	if routes, err := n.Routes(); err != nil || len(routes) != 0 {
		t.Errorf("routes after DeleteRoute: %v, %v", routes, err)
	}
}

// clusterName is of the cluster that machines of tests belong to.
const clusterName = "one"

// inventory says which machines are whose.
type inventory map[string]string

func (i inventory) Cluster(address netip.Addr) (name string, known bool, err error) {
	name, known = i[address.String()]
	return name, known, nil
}

// ours are the machines that tests make.
var ours = inventory{"192.168.64.11": clusterName, "192.168.64.12": clusterName, "192.168.64.13": clusterName}

func TestShares(t *testing.T) {
	s := newShares(2)
	a, b := netip.MustParseAddr("192.168.64.11"), netip.MustParseAddr("192.168.64.12")
	got := []bool{s.take(a, a), s.take(a, a), s.take(a, a), s.take(b, b)}
	s.give(a, a)
	got = append(got, s.take(a, a))
	if want := []bool{true, true, false, true, true}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.give(b, b)
	if _, ok := s.taken[b]; ok {
		t.Error("a peer without connections is remembered")
	}
}

// However many take what they get, one more gets its share.
func TestFairShares(t *testing.T) {
	const total = 64
	s, taken := newShares(32), 0
	s.room = func() int { return total - taken }
	take := func(n byte, itself bool) bool {
		ok := s.take(node(int(n)), peer(int(n), itself))
		if ok {
			taken++
		}
		return ok
	}
	for range total {
		for n := range byte(24) {
			take(n, true)
		}
	}
	if taken >= total || !take(100, true) || !take(101, false) {
		t.Errorf("%d of %d are taken, and another machine gets none", taken, total)
	}
	one := newShares(32)
	one.room = func() int { return 1000 }
	for range 32 {
		if !one.take(node(1), node(1)) {
			t.Fatal("a machine alone does not get its limit")
		}
	}
	if one.take(node(1), node(1)) {
		t.Error("a machine gets more than its limit")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, config := range []Config{
		{Dir: "relative", CIDR: cidr},
		{Dir: "/x"},
		{Dir: "/x", CIDR: netip.MustParsePrefix("192.168.64.1/18")},
		{Dir: "/x", CIDR: netip.MustParsePrefix("fd00::/64")},
		{Dir: "/x", CIDR: netip.MustParsePrefix("10.0.0.0/29")},
		{Dir: "/x", CIDR: netip.MustParsePrefix("127.0.0.0/16")},
		{Dir: "/x", CIDR: cidr, ID: "vpc-1"},
		{Dir: "/x", CIDR: cidr, ID: "../vpc-0123456789abcdef0"},
		{Dir: "/x", CIDR: cidr, Subnets: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/18")}},
		{Dir: "/x", CIDR: cidr, Subnets: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}},
		{Dir: "/x", CIDR: cidr, Subnets: []netip.Prefix{subnets[0], netip.MustParsePrefix("192.168.72.0/24")}},
	} {
		if _, err := New(config); err == nil {
			t.Errorf("New(%+v) was accepted", config)
		}
	}
	n, err := New(Config{Dir: "/x", CIDR: cidr})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	for _, config := range []RelayConfig{
		{Machines: ours, Socket: "/x", Log: log},
		{Network: n, Socket: "/x", Log: log},
		{Network: n, Machines: ours, Log: log},
		{Network: n, Machines: ours, Socket: "/x"},
		{Network: n, Machines: ours, Socket: "/x", Log: log, IdentitySocket: "/y"}, // which would not know which VPC it is
	} {
		if _, err := NewRelay(config); err == nil {
			t.Errorf("NewRelay(%+v) was accepted", config)
		}
	}
}
