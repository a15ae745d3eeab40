// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
)

// A range is kept until another one is chosen, and it is no VPC's.
func TestBalancerRangeIsKept(t *testing.T) {
	s := Session{State: newDir(t), Wanted: clusterconfig.Default(0, v1alpha1.ProviderSimulated)}
	expect := func(want netip.Prefix) {
		t.Helper()
		if got, err := balancerrange.Read(s.State); err != nil || got != want {
			t.Errorf("the range is %s, %v, want %s", got, err, want)
		}
	}
	refused := func(text string) {
		t.Helper()
		s.BalancerRange = netip.MustParsePrefix(text)
		if err := s.check("", false); err == nil || !strings.Contains(err.Error(), "--load-balancer-range: "+text+" overlaps 172.31.0.0/16, the range of VPC vpc-") {
			t.Errorf("%s: %v", text, err)
		}
	}
	refused("172.31.7.0/24") // of the default VPC that there will be
	refused("172.0.0.0/8")
	for _, step := range []struct {
		wanted  netip.Prefix
		changed bool
		then    netip.Prefix
	}{
		{netip.Prefix{}, false, loadbalancer.DefaultRange},
		{loadbalancer.DefaultRange, false, loadbalancer.DefaultRange},
		{netip.MustParsePrefix("198.51.100.0/28"), true, netip.MustParsePrefix("198.51.100.0/28")},
		{netip.MustParsePrefix("198.51.100.0/28"), false, netip.MustParsePrefix("198.51.100.0/28")},
		{netip.Prefix{}, false, netip.MustParsePrefix("198.51.100.0/28")},
		{loadbalancer.DefaultRange, true, loadbalancer.DefaultRange},
	} {
		s.BalancerRange = step.wanted
		if err := s.check("", false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.save(t.Context(), &Outcome{}); err != nil {
			t.Fatal(err)
		}
		if changed, err := balancerrange.Keep(s.State, s.BalancerRange); err != nil || changed != step.changed {
			t.Errorf("asked for %q: changed %v, %v", step.wanted, changed, err)
		}
		expect(step.then)
	}
	refused("172.31.7.0/24") // of the default VPC that there is
}

// Addresses on the host are unique in all VPCs, none is the account's own, and each is kept when the range changes. A balancer that does not listen
// on the host takes none.
func TestAddressesOnTheHost(t *testing.T) {
	s := Session{State: newDir(t), Wanted: clusterconfig.Default(0, v1alpha1.ProviderSimulated)}
	if _, err := s.save(t.Context(), &Outcome{}); err != nil {
		t.Fatal(err)
	}
	own, err := account.Read(s.State)
	if err != nil {
		t.Fatal(err)
	}
	if err := vpc.Describe(s.State.VPCs(), vpc.Description{ID: "vpc-0123456789abcdef0", CIDR: netip.MustParsePrefix("10.9.0.0/16"), Subnets: []vpc.Subnet{
		{ID: "subnet-0123456789abcdef0", Zone: "us-east-1a", CIDR: netip.MustParsePrefix("10.9.0.0/20")},
	}}); err != nil {
		t.Fatal(err)
	}
	all, err := vpc.List(s.State.VPCs())
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	keep := func(within netip.Prefix) {
		t.Helper()
		s.BalancerRange = within
		if _, err := balancerrange.Keep(s.State, s.BalancerRange); err != nil {
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
		network, err := vpc.Open(s.State.VPCs(), all[number%2].ID)
		if err != nil {
			t.Fatal(err)
		}
		b := &balancers{config: component.Config{Account: component.Account{State: s.State}}, network: network}
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
	b := &balancers{config: component.Config{Account: component.Account{State: s.State}}}
	ranges, err := balancerrange.OfHost(s.State)
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
	write(t, s.State.LoadBalancers(), "{")
	if ranges, err := balancerrange.OfHost(s.State); err == nil {
		t.Errorf("of a range that cannot be read: %v", ranges)
	}
}

// A balancer that is to listen on the host, and finds no address there, serves in the VPC what its Service says by now, and those that it says.
func TestNoAddressOnTheHost(t *testing.T) {
	s := Session{State: newDir(t), Wanted: clusterconfig.Default(0, v1alpha1.ProviderSimulated), BalancerRange: netip.MustParsePrefix("198.51.100.0/30")}
	if _, err := s.save(t.Context(), &Outcome{}); err != nil {
		t.Fatal(err)
	}
	if _, err := balancerrange.Keep(s.State, s.BalancerRange); err != nil {
		t.Fatal(err)
	}
	all, err := vpc.List(s.State.VPCs())
	if err != nil {
		t.Fatal(err)
	}
	network, err := vpc.Open(s.State.VPCs(), all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	config := component.Config{Account: component.Account{State: s.State}}
	config.Cluster.Spec.Name = "muster"
	b := &balancers{service: &Service{}, config: config, network: network}
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
