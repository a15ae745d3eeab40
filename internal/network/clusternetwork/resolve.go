// SPDX-License-Identifier: Apache-2.0

package clusternetwork

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"muster.dev/muster/api/v1alpha1"
)

// Reasons of a [Problem], for conditions.
const (
	ReasonNoDefault  = "DefaultVpcNotFound"
	ReasonNoSubnet   = "SubnetNotFound"
	ReasonSubnets    = "InvalidSubnets"
	ReasonPodSubnets = "InvalidPodSubnets"
	ReasonPodRange   = "InvalidPodRange"
	ReasonNoPodRange = "NoPodRangeLeft"
)

// Reasons lists them.
func Reasons() []string {
	return []string{ReasonNoDefault, ReasonNoSubnet, ReasonSubnets, ReasonPodSubnets, ReasonPodRange, ReasonNoPodRange}
}

// Problem is a network that a cluster cannot have. People have to change something.
type Problem struct{ Reason, Message string }

func (p *Problem) Error() string { return p.Message }

func problem(reason, format string, values ...any) error {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, values...)}
}

// Taken is the range of pods of another cluster.
type Taken struct {
	Cluster string
	VPCID   string
	PodCIDR netip.Prefix
}

// minZones is how many zones the subnets of a cluster must be in, as on EKS: its API server has an address in two.
const minZones = 2

// Resolve chooses the network of a cluster that has none yet: the subnets that its spec names, or all of the default
// VPC but those for pods; the range of pods that it names, or else the VPC's own for pods of machines, and for those of
// other nodes the first one that nobody in the VPC has. It gives no addresses to the API server. An error is a
// [*Problem].
func Resolve(spec v1alpha1.ClusterNetwork, vpcs []VPC, taken []Taken) (Network, error) {
	within, subnets, err := choose(spec, vpcs)
	if err != nil {
		return Network{}, err
	}
	if zones := zonesOf(subnets); len(zones) < minZones {
		return Network{}, problem(ReasonSubnets, "spec.network.subnetIDs: the subnets %s are in %d availability zone: name subnets in at least %d",
			strings.Join(idsOf(subnets), ", "), len(zones), minZones)
	}
	podSubnets, err := choosePodSubnets(spec, within, subnets)
	if err != nil {
		return Network{}, err
	}
	pods, err := podRange(spec, within, taken)
	if err != nil {
		return Network{}, err
	}
	return Network{
		Version: Version, VPCID: within.ID, VPCCIDR: within.CIDR, Subnets: subnets, PodCIDR: pods, PodsInSubnets: spec.PodCIDR == "", PodSubnets: podSubnets,
	}, nil
}

// choose finds the VPC and the subnets, sorted by zone and range.
func choose(spec v1alpha1.ClusterNetwork, vpcs []VPC) (VPC, []Subnet, error) {
	ids := spec.SubnetIDs
	var within VPC
	var subnets []Subnet
	if len(ids) == 0 {
		at := slices.IndexFunc(vpcs, func(v VPC) bool { return v.Default })
		if at < 0 {
			return VPC{}, nil, problem(ReasonNoDefault, "spec.network.subnetIDs: the account has no default VPC: name the subnets that the cluster is in")
		}
		within = vpcs[at]
		subnets = slices.DeleteFunc(slices.Clone(within.Subnets), func(s Subnet) bool { return slices.Contains(spec.PodSubnetIDs, v1alpha1.SubnetID(s.ID)) })
		if len(subnets) == 0 {
			but := ""
			if len(within.Subnets) > 0 {
				but = " but those for pods"
			}
			return VPC{}, nil, problem(ReasonNoSubnet, "spec.network.subnetIDs: the default VPC %s has no subnets%s: make some in at least %d zones, or name others", within.ID, but, minZones)
		}
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return VPC{}, nil, problem(ReasonSubnets, "spec.network.subnetIDs: %s is there twice: name it once", id)
		}
		of, subnet, ok := find(string(id), vpcs)
		if !ok {
			return VPC{}, nil, problem(ReasonNoSubnet, "spec.network.subnetIDs: the subnet %q does not exist, or is not Ready", id)
		}
		if within.ID != "" && within.ID != of.ID {
			return VPC{}, nil, problem(ReasonSubnets, "spec.network.subnetIDs: %s is in %s and %s in %s: name subnets of one VPC", ids[0], within.ID, id, of.ID)
		}
		within = of
		subnets = append(subnets, subnet)
	}
	slices.SortFunc(subnets, func(a, b Subnet) int {
		return cmp.Or(strings.Compare(a.Zone, b.Zone), a.CIDR.Addr().Compare(b.CIDR.Addr()))
	})
	return within, subnets, nil
}

// choosePodSubnets finds the subnets that a spec names for pods, in its order: one or more in each zone of the
// cluster's subnets.
func choosePodSubnets(spec v1alpha1.ClusterNetwork, within VPC, subnets []Subnet) ([]Subnet, error) {
	const path = "spec.network.podSubnetIDs"
	if len(spec.PodSubnetIDs) == 0 {
		return nil, nil
	}
	if spec.PodCIDR != "" {
		return nil, problem(ReasonPodSubnets, "%s: pods have addresses of podCIDR or of podSubnetIDs: give one of the two", path)
	}
	var chosen []Subnet
	for i, id := range spec.PodSubnetIDs {
		if slices.Contains(spec.PodSubnetIDs[:i], id) {
			return nil, problem(ReasonPodSubnets, "%s: %s is there twice: name it once", path, id)
		}
		_, subnet, ok := find(string(id), []VPC{within})
		if !ok {
			return nil, problem(ReasonNoSubnet, "%s: there is no subnet %q in %s, the cluster's VPC, or it is not Ready", path, id, within.ID)
		}
		chosen = append(chosen, subnet)
	}
	has := zonesOf(chosen)
	lacking := slices.DeleteFunc(zonesOf(subnets), func(zone string) bool { return slices.Contains(has, zone) })
	if len(lacking) > 0 {
		return nil, problem(ReasonPodSubnets, "%s: the cluster has subnets for machines in %s, and none for their pods there: name one in each of these zones, or other subnets in spec.network.subnetIDs",
			path, strings.Join(lacking, ", "))
	}
	return chosen, nil
}

func find(id string, vpcs []VPC) (VPC, Subnet, bool) {
	for _, v := range vpcs {
		for _, subnet := range v.Subnets {
			if subnet.ID == id {
				return v, subnet, true
			}
		}
	}
	return VPC{}, Subnet{}, false
}

// podRange is the range of pods that a spec names, if nobody has any of it, or else the first one that nobody has.
func podRange(spec v1alpha1.ClusterNetwork, within VPC, taken []Taken) (netip.Prefix, error) {
	services, err := netip.ParsePrefix(spec.ServiceCIDR)
	if err != nil {
		return netip.Prefix{}, problem(ReasonPodRange, "spec.network.serviceCIDR %q is not a range of IPv4 addresses", spec.ServiceCIDR)
	}
	if services.Overlaps(within.CIDR) {
		return netip.Prefix{}, problem(ReasonPodRange, "spec.network.serviceCIDR %s overlaps %s, the range of %s: choose another one", services, within.CIDR, within.ID)
	}
	conflict := func(pods netip.Prefix) string {
		switch {
		case pods.Overlaps(within.CIDR):
			return fmt.Sprintf("%s, the range of %s", within.CIDR, within.ID)
		case pods.Overlaps(services):
			return fmt.Sprintf("%s, the range of Services", services)
		}
		for _, other := range taken {
			if other.VPCID == within.ID && other.PodCIDR.Overlaps(pods) {
				return fmt.Sprintf("%s, the pods of cluster %s in the same VPC", other.PodCIDR, other.Cluster)
			}
		}
		return ""
	}
	if spec.PodCIDR != "" {
		pods, err := netip.ParsePrefix(spec.PodCIDR)
		if err != nil || !pods.Addr().Is4() {
			return netip.Prefix{}, problem(ReasonPodRange, "spec.network.podCIDR %q is not a range of IPv4 addresses", spec.PodCIDR)
		}
		if with := conflict(pods); with != "" {
			return netip.Prefix{}, problem(ReasonPodRange, "spec.network.podCIDR %s overlaps %s: choose another range, or leave it out and one is chosen", pods, with)
		}
		return pods, nil
	}
	for _, pods := range podRanges() {
		if conflict(pods) == "" {
			return pods, nil
		}
	}
	return netip.Prefix{}, problem(ReasonNoPodRange, "spec.network.podCIDR: every /16 of 10.0.0.0/8 that is chosen by itself overlaps another range of %s: name one", within.ID)
}

// podRanges are the ranges that are chosen from, in this order: 10.244.0.0/16 and those above it, then those from
// 10.128.0.0/16 on.
func podRanges() []netip.Prefix {
	const first, lowest, end = 244, 128, 256
	var ranges []netip.Prefix
	for i := range end - lowest {
		n := first + i
		if n >= end {
			n += lowest - end
		}
		ranges = append(ranges, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n & 0xff), 0, 0}), 16))
	}
	return ranges
}

// EndpointPairs lists pairs of subnets in different zones, in which the API server may have its addresses, in the order
// in which they are tried.
func (n Network) EndpointPairs() [][]string {
	var pairs [][]string
	for i, a := range n.Subnets {
		for _, b := range n.Subnets[i+1:] {
			if a.Zone != b.Zone {
				pairs = append(pairs, []string{a.ID, b.ID})
			}
		}
	}
	return pairs
}
