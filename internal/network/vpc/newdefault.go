// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"net/netip"
	"slices"

	"muster.dev/muster/internal/network/egresspolicy"
)

// The range of the default VPC, as of AWS's accounts, and the bits of its subnets, one in each zone.
const (
	defaultCIDR       = "172.31.0.0/16"
	defaultSubnetBits = 20
)

// NewDefault describes the default VPC of a new account, with a subnet in each zone. makeID makes an id with a prefix.
// The first zone has the smallest id of a subnet: it gets the first machine.
func NewDefault(zones []string, egress egresspolicy.Mode, makeID func(prefix string) string) Description {
	cidr := netip.MustParsePrefix(defaultCIDR)
	description := Description{ID: makeID("vpc-"), CIDR: cidr, Default: true, Egress: egresspolicy.Policy{Mode: egress}}
	ids := make([]string, 0, len(zones))
	for range zones {
		ids = append(ids, makeID("subnet-"))
	}
	slices.Sort(ids)
	for i, zone := range zones {
		block := cidr.Addr().As4()
		block[2] += byte(i << (24 - defaultSubnetBits))
		description.Subnets = append(description.Subnets, Subnet{
			ID: ids[i], Zone: zone, CIDR: netip.PrefixFrom(netip.AddrFrom4(block), defaultSubnetBits),
		})
	}
	return description
}
