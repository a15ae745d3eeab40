// SPDX-License-Identifier: Apache-2.0

package clusternetwork

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/api/v1alpha1"
)

const (
	vpcOne, vpcTwo = "vpc-00000000000000001", "vpc-00000000000000002"
	a, b, c        = "subnet-0000000000000000a", "subnet-0000000000000000b", "subnet-0000000000000000c"
	a2, other      = "subnet-000000000000000a2", "subnet-0000000000000000f"
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

var compare = cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})

// account has a default VPC with a subnet in each of three zones, and another one with the same range.
func account() []VPC {
	return []VPC{
		{ID: vpcTwo, CIDR: prefix("172.31.0.0/16"), Subnets: []Subnet{{other, "us-east-1a", prefix("172.31.0.0/24")}, {a2, "us-east-1a", prefix("172.31.1.0/24")}}},
		{ID: vpcOne, CIDR: prefix("172.31.0.0/16"), Default: true, Subnets: []Subnet{
			{c, "us-east-1c", prefix("172.31.32.0/20")}, {a, "us-east-1a", prefix("172.31.0.0/20")}, {b, "us-east-1b", prefix("172.31.16.0/20")},
		}},
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	pods := func(vpc string, ranges ...string) (taken []Taken) {
		for i, text := range ranges {
			taken = append(taken, Taken{Cluster: fmt.Sprint("c", i), VPCID: vpc, PodCIDR: prefix(text)})
		}
		return taken
	}
	var all []string
	for n := range 256 {
		all = append(all, fmt.Sprintf("10.%d.0.0/16", n))
	}
	for name, test := range map[string]struct {
		ids            []v1alpha1.SubnetID
		pods, services string
		taken          []Taken
		vpcs           []VPC
		subnets        []string
		wantPods       string
		reason, says   string
	}{
		"nothing":                {subnets: []string{a, b, c}, wantPods: "10.244.0.0/16"},
		"two subnets":            {ids: []v1alpha1.SubnetID{c, a}, subnets: []string{a, c}, wantPods: "10.244.0.0/16"},
		"the second cluster":     {taken: pods(vpcOne, "10.244.0.0/16"), subnets: []string{a, b, c}, wantPods: "10.245.0.0/16"},
		"a gap":                  {taken: pods(vpcOne, "10.244.0.0/16", "10.246.0.0/15"), subnets: []string{a, b, c}, wantPods: "10.245.0.0/16"},
		"large ranges":           {taken: pods(vpcOne, "10.224.0.0/11"), subnets: []string{a, b, c}, wantPods: "10.128.0.0/16"},
		"pods of another VPC":    {taken: pods(vpcTwo, "10.244.0.0/16"), subnets: []string{a, b, c}, wantPods: "10.244.0.0/16"},
		"beside Services":        {services: "10.244.128.0/20", subnets: []string{a, b, c}, wantPods: "10.245.0.0/16"},
		"a range of one's own":   {pods: "10.0.0.0/16", subnets: []string{a, b, c}, wantPods: "10.0.0.0/16"},
		"another cluster's":      {pods: "10.244.4.0/22", taken: pods(vpcOne, "10.244.0.0/16"), reason: ReasonPodRange, says: "10.244.4.0/22 overlaps 10.244.0.0/16, the pods of cluster c0"},
		"the same, another VPC":  {pods: "10.244.4.0/22", taken: pods(vpcTwo, "10.244.0.0/16"), subnets: []string{a, b, c}, wantPods: "10.244.4.0/22"},
		"pods in the VPC":        {pods: "172.16.0.0/12", reason: ReasonPodRange, says: "172.31.0.0/16, the range of " + vpcOne},
		"pods among Services":    {pods: "10.100.0.0/16", reason: ReasonPodRange, says: "the range of Services"},
		"pods unreadable":        {pods: "x", reason: ReasonPodRange, says: `podCIDR "x"`},
		"Services in the VPC":    {services: "172.31.200.0/24", reason: ReasonPodRange, says: "serviceCIDR 172.31.200.0/24 overlaps 172.31.0.0/16"},
		"Services unreadable":    {services: "y", reason: ReasonPodRange, says: `serviceCIDR "y"`},
		"no range left":          {taken: pods(vpcOne, all...), reason: ReasonNoPodRange, says: "name one"},
		"no such subnet":         {ids: []v1alpha1.SubnetID{a, "subnet-00000000000000009"}, reason: ReasonNoSubnet, says: `the subnet "subnet-00000000000000009" does not exist`},
		"one zone":               {ids: []v1alpha1.SubnetID{other, a2}, reason: ReasonSubnets, says: "are in 1 availability zone"},
		"two VPCs":               {ids: []v1alpha1.SubnetID{a, other}, reason: ReasonSubnets, says: "name subnets of one VPC"},
		"twice":                  {ids: []v1alpha1.SubnetID{a, a}, reason: ReasonSubnets, says: "twice"},
		"no default VPC":         {vpcs: account()[:1], reason: ReasonNoDefault, says: "no default VPC"},
		"a default without any":  {vpcs: []VPC{{ID: vpcOne, CIDR: prefix("172.31.0.0/16"), Default: true}}, reason: ReasonNoSubnet, says: "has no subnets"},
		"a default in one zone":  {vpcs: []VPC{{ID: vpcOne, CIDR: prefix("172.31.0.0/16"), Default: true, Subnets: account()[1].Subnets[:1]}}, reason: ReasonSubnets, says: "at least 2"},
		"named, without default": {ids: []v1alpha1.SubnetID{a}, vpcs: account()[:1], reason: ReasonNoSubnet, says: a},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := v1alpha1.ClusterNetwork{SubnetIDs: test.ids, PodCIDR: test.pods, ServiceCIDR: "10.100.0.0/16"}
			if test.services != "" {
				spec.ServiceCIDR = test.services
			}
			vpcs := test.vpcs
			if vpcs == nil {
				vpcs = account()
			}
			got, err := Resolve(spec, vpcs, test.taken)
			if test.reason != "" {
				var p *Problem
				if !errors.As(err, &p) || p.Reason != test.reason || !strings.Contains(p.Message, test.says) {
					t.Fatalf("got %+v, %v; want %s: %s", got, err, test.reason, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.subnets, got.SubnetIDs()); diff != "" || got.VPCID != vpcOne || got.VPCCIDR != prefix("172.31.0.0/16") || got.PodCIDR != prefix(test.wantPods) ||
				got.PodsInSubnets != (test.pods == "") || got.Pods() != map[bool]netip.Prefix{true: got.VPCCIDR, false: got.PodCIDR}[test.pods == ""] {
				t.Errorf("got %+v, want pods %s and subnets\n%s", got, test.wantPods, diff)
			}
		})
	}
}

// Subnets for pods are of the cluster's VPC, in each zone of its subnets, and not among those that are chosen for
// machines.
func TestPodSubnets(t *testing.T) {
	t.Parallel()
	const podsA, podsA2, podsB = "subnet-000000000000000e1", "subnet-000000000000000e2", "subnet-000000000000000e3"
	vpcs := account()
	vpcs[1].Subnets = append(vpcs[1].Subnets, Subnet{podsA, "us-east-1a", prefix("172.31.64.0/20")},
		Subnet{podsA2, "us-east-1a", prefix("172.31.48.0/20")}, Subnet{podsB, "us-east-1b", prefix("172.31.80.0/20")})
	for name, test := range map[string]struct {
		ids, pods    []v1alpha1.SubnetID
		podCIDR      string
		subnets      []string
		reason, says string
	}{
		"in each zone":               {ids: []v1alpha1.SubnetID{a, b}, pods: []v1alpha1.SubnetID{podsA, podsB}, subnets: []string{a, b}},
		"two in a zone, as said":     {ids: []v1alpha1.SubnetID{a, b}, pods: []v1alpha1.SubnetID{podsB, podsA, podsA2}, subnets: []string{a, b}},
		"more zones than machines":   {ids: []v1alpha1.SubnetID{a, b}, pods: []v1alpha1.SubnetID{podsA, podsB, c}, subnets: []string{a, b}},
		"the machines' own":          {ids: []v1alpha1.SubnetID{a, b}, pods: []v1alpha1.SubnetID{a, podsB}, subnets: []string{a, b}},
		"not chosen for machines":    {pods: []v1alpha1.SubnetID{podsA, podsA2, podsB, c}, subnets: []string{a, b}},
		"none in a zone":             {ids: []v1alpha1.SubnetID{a, b, c}, pods: []v1alpha1.SubnetID{podsA}, reason: ReasonPodSubnets, says: "in us-east-1b, us-east-1c, and none for their pods there"},
		"none in a zone of all":      {pods: []v1alpha1.SubnetID{podsA, podsA2, podsB}, reason: ReasonPodSubnets, says: "in us-east-1c, and none for their pods"},
		"twice":                      {ids: []v1alpha1.SubnetID{a, b}, pods: []v1alpha1.SubnetID{podsA, podsB, podsA}, reason: ReasonPodSubnets, says: podsA + " is there twice"},
		"of another VPC":             {ids: []v1alpha1.SubnetID{a, b}, pods: []v1alpha1.SubnetID{other, podsB}, reason: ReasonNoSubnet, says: `no subnet "` + other + `" in ` + vpcOne},
		"not there":                  {ids: []v1alpha1.SubnetID{a, b}, pods: []v1alpha1.SubnetID{"subnet-00000000000000009"}, reason: ReasonNoSubnet, says: "not Ready"},
		"beside podCIDR":             {ids: []v1alpha1.SubnetID{a, b}, pods: []v1alpha1.SubnetID{podsA, podsB}, podCIDR: "10.0.0.0/16", reason: ReasonPodSubnets, says: "give one of the two"},
		"all of the default VPC's":   {pods: []v1alpha1.SubnetID{a, b, c, podsA, podsA2, podsB}, reason: ReasonNoSubnet, says: "has no subnets but those for pods"},
		"all but one of the default": {pods: []v1alpha1.SubnetID{b, c, podsA, podsA2, podsB}, reason: ReasonSubnets, says: "at least 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Resolve(v1alpha1.ClusterNetwork{SubnetIDs: test.ids, PodSubnetIDs: test.pods, PodCIDR: test.podCIDR, ServiceCIDR: "10.100.0.0/16"}, vpcs, nil)
			if test.reason != "" {
				var p *Problem
				if !errors.As(err, &p) || p.Reason != test.reason || !strings.Contains(p.Message, test.says) || !slices.Contains(Reasons(), p.Reason) {
					t.Fatalf("got %+v, %v; want %s: %s", got, err, test.reason, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var pods []string
			for _, id := range test.pods {
				pods = append(pods, string(id))
			}
			if diff := cmp.Diff(test.subnets, got.SubnetIDs()) + cmp.Diff(pods, got.PodSubnetIDs()); diff != "" || !got.PodsInSubnets || got.Pods() != got.VPCCIDR {
				t.Errorf("got %+v\n%s", got, diff)
			}
			if zones := got.PodZones(); !slices.IsSorted(zones) || zones[0] != "us-east-1a" || zones[1] != "us-east-1b" {
				t.Errorf("zones %v", zones)
			}
		})
	}
}

// Whatever ranges others have, the one that is chosen overlaps none of them.
func TestChosenRangesOverlapNothing(t *testing.T) {
	t.Parallel()
	var taken []Taken
	for n := range 128 {
		got, err := Resolve(v1alpha1.ClusterNetwork{ServiceCIDR: "10.100.0.0/16"}, account(), taken)
		if err != nil {
			t.Fatalf("cluster %d: %v", n, err)
		}
		for _, other := range taken {
			if other.PodCIDR.Overlaps(got.PodCIDR) {
				t.Fatalf("cluster %d has %s beside %s", n, got.PodCIDR, other.PodCIDR)
			}
		}
		taken = append(taken, Taken{Cluster: fmt.Sprint(n), VPCID: vpcOne, PodCIDR: got.PodCIDR})
	}
	if _, err := Resolve(v1alpha1.ClusterNetwork{ServiceCIDR: "10.100.0.0/16"}, account(), taken); err == nil {
		t.Error("a cluster too many has a range")
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	n, err := Resolve(v1alpha1.ClusterNetwork{ServiceCIDR: "10.100.0.0/16"}, account(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{a, b}, {a, c}, {b, c}}, n.EndpointPairs()); diff != "" {
		t.Error(diff)
	}
	if _, err := n.Endpoint(); err == nil {
		t.Error("an address before there is one")
	}
	if err := n.Validate(); err == nil {
		t.Error("it is valid without an address")
	}
	n.Addresses = []netip.Addr{netip.MustParseAddr("172.31.0.4"), netip.MustParseAddr("172.31.16.4")}
	if got, err := n.Endpoint(); err != nil || got != n.Addresses[0] {
		t.Errorf("endpoint %s, %v", got, err)
	}
	if err := n.Validate(); err != nil {
		t.Error(err)
	}
	n.PodSubnets = []Subnet{{"subnet-0000000000000000d", "us-east-1a", prefix("172.31.48.0/20")}, n.Subnets[0]}
	if err := n.Validate(); err != nil {
		t.Error(err)
	}
	want := []netip.Prefix{prefix("172.31.0.0/30"), prefix("172.31.16.0/30"), prefix("172.31.32.0/30"), prefix("172.31.48.0/30"), prefix("172.31.0.4/32"), prefix("172.31.16.4/32")}
	if diff := cmp.Diff(want, n.Reserved(), compare); diff != "" {
		t.Error(diff)
	}
	for what, spoil := range map[string]func(*Network){
		"version": func(n *Network) { n.Version = 2 },
		"VPC":     func(n *Network) { n.VPCID = "" },
		"range":   func(n *Network) { n.VPCCIDR = netip.Prefix{} },
		"subnets": func(n *Network) { n.Subnets = nil },
		"pods":    func(n *Network) { n.PodCIDR = netip.Prefix{} },
		"podCIDR": func(n *Network) { n.PodsInSubnets = false },
		"outside": func(n *Network) { n.Addresses = []netip.Addr{netip.MustParseAddr("172.31.48.4")} },
	} {
		spoiled := n
		spoiled.Subnets = slices.Clone(n.Subnets)
		spoil(&spoiled)
		if spoiled.Validate() == nil {
			t.Errorf("%s: it is valid", what)
		}
	}
	if got := Resolver(prefix("172.31.0.0/16")); got != netip.MustParseAddr("172.31.0.2") || Services(prefix("172.31.0.0/16")) != got.Next() {
		t.Errorf("the resolver is %s", got)
	}
}
