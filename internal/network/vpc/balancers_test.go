// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/network/loadbalancer"
)

// balancerOf is the load balancer of a Service, by its UID.
func balancerOf(uid, address, hostAddress string) loadbalancer.Balancer {
	return loadbalancer.Balancer{
		Cluster: clusterName, Namespace: "shop", Service: "service-" + uid, UID: uid, DNSName: uid + ".elb.us-east-1.amazonaws.com",
		Address: netip.MustParseAddr(address), HostAddress: netip.MustParseAddr(hostAddress),
		Spec: loadbalancer.Spec{Listeners: []loadbalancer.Listener{{
			Protocol: loadbalancer.TCP, Port: 80, Targets: []loadbalancer.Target{{Address: netip.MustParseAddrPort("10.244.1.2:8080"), Draining: true}},
		}}},
	}
}

// undone makes a network that is not in any namespace.
func undone(t *testing.T) *Network {
	t.Helper()
	n, err := New(Config{Dir: t.TempDir(), ID: vpcID, CIDR: cidr, Subnets: subnets})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBalancersAreKept(t *testing.T) {
	n := undone(t)
	one, two := balancerOf("1", "192.168.64.20", "127.130.0.1"), balancerOf("2", "192.168.96.20", "127.130.0.2")
	for _, b := range []loadbalancer.Balancer{two, one} {
		if err := n.SetBalancer(b); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := n.Balancers()
	if err != nil || len(kept) != 2 || !sameBalancer(kept[0], one) || !sameBalancer(kept[1], two) {
		t.Fatalf("%+v, %v", kept, err)
	}
	info, err := os.Stat(n.BalancersPath())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	if err := n.SetBalancer(one); err != nil {
		t.Fatal(err)
	}
	if again, err := os.Stat(n.BalancersPath()); err != nil || !again.ModTime().Equal(info.ModTime()) {
		t.Errorf("nothing changed, and the file was written again: %v", err)
	}
	one.Listeners[0].Targets = nil
	if err := n.SetBalancer(one); err != nil {
		t.Fatal(err)
	}
	if kept, err = n.Balancers(); err != nil || len(kept) != 2 || len(kept[0].Listeners[0].Targets) != 0 {
		t.Errorf("%+v, %v", kept, err)
	}
	if taken, err := n.Taken(); err != nil || !slices.Equal(taken, []netip.Addr{one.Address, two.Address}) {
		t.Errorf("taken are %v, %v", taken, err)
	}
	if err := n.free(one.Address); err == nil || !strings.Contains(err.Error(), "load balancer of Service shop/service-1 of cluster one") {
		t.Errorf("a machine gets its address: %v", err)
	}
	if err := n.RemoveBalancers(func(b loadbalancer.Balancer) bool { return b.UID == "1" }); err != nil {
		t.Fatal(err)
	}
	if kept, err = n.Balancers(); err != nil || len(kept) != 1 || kept[0].UID != "2" || n.free(one.Address) != nil {
		t.Errorf("%+v, %v", kept, err)
	}
}

// Balancers that listen nowhere on the host have no addresses there, and so none in common.
func TestInternalBalancersHaveNoHostAddress(t *testing.T) {
	n := undone(t)
	for uid, address := range map[string]string{"1": "192.168.64.20", "2": "192.168.64.21"} {
		b := balancerOf(uid, address, "127.130.0.1")
		b.Internal, b.HostAddress = true, netip.Addr{}
		if err := n.SetBalancer(b); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := n.Balancers(); err != nil || len(kept) != 2 || kept[0].HostAddress.IsValid() {
		t.Errorf("%+v, %v", kept, err)
	}
}

func TestBalancersAreRefused(t *testing.T) {
	n := undone(t)
	if err := n.SetBalancer(balancerOf("1", "192.168.64.20", "127.130.0.1")); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]loadbalancer.Balancer{
		"the router's address":  balancerOf("2", "192.168.64.1", "127.130.0.2"),
		"out of the VPC":        balancerOf("2", "10.0.0.5", "127.130.0.2"),
		"of no subnet":          balancerOf("2", "192.168.80.5", "127.130.0.2"),
		"another's in the VPC":  balancerOf("2", "192.168.64.20", "127.130.0.2"),
		"another's on the host": balancerOf("2", "192.168.64.21", "127.130.0.1"),
		"the host's own":        balancerOf("2", "192.168.64.21", "127.0.0.1"),
		"nobody's":              {},
	} {
		if err := n.SetBalancer(b); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	for name, content := range map[string]string{
		"another version": `{"version": 2}`, "no JSON": `{`, "an address twice": fmt.Sprintf(`{"version":1,"balancers":[%s,%s]}`, `{}`, `{}`),
	} {
		if err := os.WriteFile(n.BalancersPath(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := n.Balancers(); err == nil {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// FuzzBalancers reads whatever is in the file, and what it takes is valid.
func FuzzBalancers(f *testing.F) {
	f.Add([]byte(`{"version":1,"balancers":[{"cluster":"one","namespace":"shop","service":"web","uid":"1","dnsName":"a","address":"192.168.64.20","hostAddress":"127.130.0.1","listeners":[{"protocol":"TCP","port":80,"check":{"protocol":"TCP"},"targets":[{"address":"10.244.0.1:80"}]}]}]}`))
	f.Add([]byte(`{"version":1,"balancers":[{"address":"::1"}]}`))
	f.Add([]byte(`{"version":2}`))
	dir := f.TempDir()
	n, err := New(Config{Dir: filepath.Join(dir, "vpc"), ID: vpcID, CIDR: cidr, Subnets: subnets})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := balancersFile.parse(n, raw)
		if err != nil {
			return
		}
		for _, b := range all {
			if err := b.Validate(); err != nil {
				t.Errorf("%+v: %v", b, err)
			}
			if _, in := n.SubnetOf(b.Address); !in {
				t.Errorf("%s is in no subnet", b.Address)
			}
		}
	})
}
