// SPDX-License-Identifier: Apache-2.0

// Package clusternetworktest has a cluster's network for tests of other packages.
package clusternetworktest

import (
	"net/netip"

	"muster.dev/muster/internal/network/clusternetwork"
)

// Ids of the VPC and the subnets of the network.
const (
	VPCID   = "vpc-0123456789abcdef0"
	SubnetA = "subnet-0123456789abcdefa"
	SubnetB = "subnet-0123456789abcdefb"
)

// Network is one that the default VPC gives the first cluster.
func Network() clusternetwork.Network {
	return clusternetwork.Network{
		Version: clusternetwork.Version, VPCID: VPCID, VPCCIDR: netip.MustParsePrefix("172.31.0.0/16"),
		Subnets: []clusternetwork.Subnet{
			{ID: SubnetA, Zone: "us-east-1a", CIDR: netip.MustParsePrefix("172.31.0.0/20")},
			{ID: SubnetB, Zone: "us-east-1b", CIDR: netip.MustParsePrefix("172.31.16.0/20")},
		},
		Addresses: []netip.Addr{netip.MustParseAddr("172.31.0.4"), netip.MustParseAddr("172.31.16.4")},
		PodCIDR:   netip.MustParsePrefix("10.244.0.0/16"),
	}
}
