// SPDX-License-Identifier: Apache-2.0

package balancerstore

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"

	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// none are the processes of an account that are not supervised yet.
func none() Processes { return nil }

// newAccount makes an account with its default VPC.
func newAccount(t *testing.T) (statedir.Dir, account.Account) {
	t.Helper()
	dir := statedir.Dir(t.TempDir())
	own, err := account.Make(dir, "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	described := vpc.NewDefault([]string{"us-east-1a", "us-east-1b"}, egresspolicy.NAT, func(prefix string) string { return prefix + "0123456789abcdef1" })
	described.Subnets[1].ID = "subnet-0123456789abcdef2"
	if err := vpc.Describe(dir.VPCs(), described); err != nil {
		t.Fatal(err)
	}
	return dir, own
}

// Addresses on the host are unique in all VPCs, none is the account's own, and each is kept when the range changes. A
// balancer that does not listen on the host takes none.
func TestAddressesOnTheHost(t *testing.T) {
	dir, own := newAccount(t)
	if err := vpc.Describe(dir.VPCs(), vpc.Description{ID: "vpc-0123456789abcdef0", CIDR: netip.MustParsePrefix("10.9.0.0/16"), Subnets: []vpc.Subnet{
		{ID: "subnet-0123456789abcdef0", Zone: "us-east-1a", CIDR: netip.MustParsePrefix("10.9.0.0/20")},
	}}); err != nil {
		t.Fatal(err)
	}
	all, err := vpc.List(dir.VPCs())
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	keep := func(within netip.Prefix) {
		t.Helper()
		if _, err := balancerrange.Keep(dir, within); err != nil {
			t.Fatal(err)
		}
	}
	small := netip.PrefixFrom(own.Address, 29).Masked() // six addresses, or five beside the account's own
	keep(small)
	room := 6
	if at := own.Address.As4()[3] % 8; at != 0 && at != 7 { // which are left out anyway
		room--
	}
	seen := map[netip.Addr]bool{own.Address: true}
	serves := loadbalancer.Spec{Listeners: []loadbalancer.Listener{{Protocol: loadbalancer.TCP, Port: 80}}}
	give := func(number int, spec loadbalancer.Spec) (loadbalancer.Balancer, error) {
		t.Helper()
		network, err := vpc.Open(dir.VPCs(), all[number%2].ID)
		if err != nil {
			t.Fatal(err)
		}
		b := New(none).Of(component.Config{Account: component.Account{State: dir}}, network, nil)
		address := all[number%2].Subnets[0].CIDR.Addr().As4()
		address[3] = byte(20 + number)
		made := loadbalancer.Balancer{
			Cluster: "muster", Namespace: "shop", Service: "web", UID: string(rune('a' + number)), DNSName: string(rune('a' + number)), Address: netip.AddrFrom4(address), Spec: spec,
		}
		if err := b.addressOnHost(&made); err != nil {
			return made, err
		}
		if err := network.SetBalancer(made); err != nil {
			t.Fatal(err)
		}
		return made, nil
	}
	internal := serves
	internal.Internal = true
	for number, spec := range []loadbalancer.Spec{internal, {}} {
		if made, err := give(number, spec); err != nil || made.HostAddress.IsValid() {
			t.Errorf("listens nowhere on the host: %s, %v", made.HostAddress, err)
		}
	}
	var last loadbalancer.Balancer
	for number := range room {
		made, err := give(2+number, serves)
		if err != nil || seen[made.HostAddress] || !small.Contains(made.HostAddress) {
			t.Fatalf("balancer %d of %d in %s: %s, %v", number+1, room, small, made.HostAddress, err)
		}
		seen[made.HostAddress] = true
		last = made
	}
	if made, err := give(12, serves); !errors.Is(err, loadbalancer.ErrRangeFull) {
		t.Errorf("the range is full: %s, %v", made.HostAddress, err)
	}
	other := netip.MustParsePrefix("198.51.100.0/29")
	keep(other)
	if made, err := give(12, serves); err != nil || !other.Contains(made.HostAddress) {
		t.Errorf("of the other range: %s, %v", made.HostAddress, err)
	}
	b := New(none).Of(component.Config{Account: component.Account{State: dir}}, nil, nil)
	ranges, err := balancerrange.OfHost(dir)
	if err != nil || ranges[0] != other || len(ranges) != 1+len(seen)+1 {
		t.Errorf("%v, %v", ranges, err)
	}
	for address := range seen {
		if !slices.Contains(ranges, netip.PrefixFrom(address, 32)) {
			t.Errorf("%s is not among %v", address, ranges)
		}
	}
	kept := last
	if err := b.addressOnHost(&kept); err != nil || kept.HostAddress != last.HostAddress {
		t.Errorf("it was at %s and is at %s, %v", last.HostAddress, kept.HostAddress, err)
	}
	if err := os.WriteFile(dir.LoadBalancers(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ranges, err := balancerrange.OfHost(dir); err == nil {
		t.Errorf("of a range that cannot be read: %v", ranges)
	}
}

// A balancer that is to listen on the host, and finds no address there, serves in the VPC what its Service says by now,
// and those that it says.
func TestNoAddressOnTheHost(t *testing.T) {
	dir, _ := newAccount(t)
	if _, err := balancerrange.Keep(dir, netip.MustParsePrefix("198.51.100.0/30")); err != nil {
		t.Fatal(err)
	}
	all, err := vpc.List(dir.VPCs())
	if err != nil {
		t.Fatal(err)
	}
	network, err := vpc.Open(dir.VPCs(), all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	config := component.Config{Account: component.Account{State: dir}}
	config.Cluster.Spec.Name = "muster"
	b := New(none).Of(config, network, nil)
	spec := loadbalancer.Spec{Listeners: []loadbalancer.Listener{{Protocol: loadbalancer.TCP, Port: 80}}}
	for n := range 3 { // of which two take all addresses of the range
		one := loadbalancer.Balancer{Cluster: "muster", Namespace: "shop", Service: "web", UID: string(rune('a' + n)), DNSName: string(rune('a' + n)), Spec: spec}
		one.Internal = n == 2
		address := all[0].Subnets[0].CIDR.Addr().As4()
		address[3] = byte(20 + n)
		one.Address = netip.AddrFrom4(address)
		if err := errors.Join(b.addressOnHost(&one), network.SetBalancer(one)); err != nil {
			t.Fatal(err)
		}
	}
	spec.SourceRanges = []netip.Prefix{netip.MustParsePrefix("172.31.0.0/24")}
	if _, err := b.Ensure(loadbalancer.Service{Namespace: "shop", Name: "web", UID: "c"}, spec); !errors.Is(err, loadbalancer.ErrRangeFull) {
		t.Errorf("the range is full: %v", err)
	}
	kept, err := network.Balancers()
	if err != nil || len(kept) != 3 || !slices.Equal(kept[2].SourceRanges, spec.SourceRanges) || !kept[2].Internal || kept[2].HostAddress.IsValid() {
		t.Errorf("it serves %+v, %v", kept, err)
	}
}
