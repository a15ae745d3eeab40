// SPDX-License-Identifier: Apache-2.0

package clusternetwork

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// VPC is a network that a cluster may be in.
type VPC struct {
	ID      string
	CIDR    netip.Prefix
	Default bool
	Subnets []Subnet
}

// Subnet is a part of a VPC's range, in one zone.
type Subnet struct {
	ID   string       `json:"id"`
	Zone string       `json:"zone"`
	CIDR netip.Prefix `json:"cidr"`
}

// Network is the network of one cluster as it was resolved.
type Network struct {
	// Version is that of the record's format, 1.
	Version int          `json:"version"`
	VPCID   string       `json:"vpcID"`
	VPCCIDR netip.Prefix `json:"vpcCIDR"`
	// Subnets are those that the cluster is in: machines of its node groups are there unless the group names others.
	Subnets []Subnet `json:"subnets"`
	// Addresses are the API server's, in two of the subnets, in different zones. The first one is told to machines.
	Addresses []netip.Addr `json:"addresses"`
	// PodCIDR is a range of pods' addresses, a /24 for each node. If PodsInSubnets, it is for nodes that are no machine
	// of the VPC's alone.
	PodCIDR netip.Prefix `json:"podCIDR"`
	// PodsInSubnets reports whether pods of machines have addresses of the machines' subnets, a range for each machine.
	PodsInSubnets bool `json:"podsInSubnets,omitempty"`
	// PodSubnets are the subnets of the pods' ranges, one or more in each zone of the cluster's subnets. The list is
	// empty if pods have ranges of their machines' subnets.
	PodSubnets []Subnet `json:"podSubnets,omitempty"`
	// SecurityGroupID is the id of the cluster's own security group.
	SecurityGroupID string `json:"securityGroupID,omitempty"`
}

// Version of the record's format.
const Version = 1

// Pods is the range that pods of machines have their addresses in.
func (n Network) Pods() netip.Prefix {
	if n.PodsInSubnets {
		return n.VPCCIDR
	}
	return n.PodCIDR
}

// SubnetIDs lists the ids of the cluster's subnets.
func (n Network) SubnetIDs() []string { return idsOf(n.Subnets) }

// PodSubnetIDs lists the ids of the subnets for pods, in the order in which they are tried.
func (n Network) PodSubnetIDs() []string { return idsOf(n.PodSubnets) }

// PodZones lists the zones of the subnets for pods, sorted.
func (n Network) PodZones() []string { return zonesOf(n.PodSubnets) }

func zonesOf(subnets []Subnet) []string {
	zones := make([]string, 0, len(subnets))
	for _, subnet := range subnets {
		zones = append(zones, subnet.Zone)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

func idsOf(subnets []Subnet) []string {
	ids := make([]string, 0, len(subnets))
	for _, subnet := range subnets {
		ids = append(ids, subnet.ID)
	}
	return ids
}

// Endpoint is the address of the API server that machines are told.
func (n Network) Endpoint() (netip.Addr, error) {
	if len(n.Addresses) == 0 {
		return netip.Addr{}, errors.New("the network of the cluster has no address for the API server")
	}
	return n.Addresses[0], nil
}

// The places of the VPC's own addresses in its range.
const (
	resolverHost = 2
	servicesHost = 3
)

// Resolver is the address of a VPC's name server: the second of its range.
func Resolver(cidr netip.Prefix) netip.Addr { return nth(cidr, resolverHost) }

// Services is the address of STS and IAM in a VPC: the third of its range.
func Services(cidr netip.Prefix) netip.Addr { return nth(cidr, servicesHost) }

func nth(cidr netip.Prefix, n int) netip.Addr {
	address := cidr.Masked().Addr()
	for range n {
		address = address.Next()
	}
	return address
}

// Reserved lists the addresses that no node has: the first four of the VPC and of each subnet of the cluster and of its
// pods, and the API server's.
func (n Network) Reserved() []netip.Prefix {
	ranges := []netip.Prefix{first(n.VPCCIDR)}
	for _, subnet := range slices.Concat(n.Subnets, n.PodSubnets) {
		if own := first(subnet.CIDR); !slices.Contains(ranges, own) {
			ranges = append(ranges, own)
		}
	}
	for _, address := range n.Addresses {
		ranges = append(ranges, netip.PrefixFrom(address, address.BitLen()))
	}
	return ranges
}

// first are the addresses of a range that AWS keeps for itself, but for the last one.
func first(cidr netip.Prefix) netip.Prefix { return netip.PrefixFrom(cidr.Masked().Addr(), 30) }

// Validate checks a network that was recorded.
func (n Network) Validate() error {
	switch {
	case n.Version != Version:
		return fmt.Errorf("version is %d, want %d", n.Version, Version)
	case n.VPCID == "":
		return errors.New("it names no VPC")
	case !n.VPCCIDR.IsValid() || !n.VPCCIDR.Addr().Is4():
		return fmt.Errorf("the VPC's range %s is not one of IPv4 addresses", n.VPCCIDR)
	case len(n.Subnets) == 0:
		return errors.New("it names no subnet")
	case len(n.Addresses) == 0:
		return errors.New("it has no address for the API server")
	case !n.PodCIDR.IsValid() || !n.PodCIDR.Addr().Is4():
		return fmt.Errorf("podCIDR %s is not a range of IPv4 addresses", n.PodCIDR)
	case len(n.PodSubnets) > 0 && !n.PodsInSubnets:
		return errors.New("it has subnets for pods whose addresses are of podCIDR")
	}
	for _, address := range n.Addresses {
		if !slices.ContainsFunc(n.Subnets, func(s Subnet) bool { return s.CIDR.Contains(address) }) {
			return fmt.Errorf("the API server's address %s is in no subnet of the cluster", address)
		}
	}
	return nil
}
