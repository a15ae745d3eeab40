// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"net/netip"
	"strings"
)

// Subnet is a part of a VPC's addresses, in one zone.
type Subnet struct {
	// ID, VPC and Zone are as EC2 writes them: subnet-0123456789abcdef0, vpc-0123456789abcdef0, us-east-1a.
	ID   string
	VPC  string
	Zone string
	CIDR netip.Prefix
	// Taken are addresses of the subnet that are not for machines, beside those that every subnet reserves: those of clusters' endpoints.
	Taken []netip.Addr
}

// reserved is how many addresses at the start of a subnet belong to no machine, as on EC2: the network address, the router, the
// resolver (of the VPC, which is in its first subnet), and one for later. The last address is the broadcast address.
const reserved = 4

// Allocate chooses the lowest address of a subnet that nobody has.
func Allocate(subnet netip.Prefix, used map[netip.Addr]bool) (netip.Addr, error) {
	if !subnet.IsValid() || !subnet.Addr().Is4() {
		return netip.Addr{}, fmt.Errorf("allocating address: %s is not a range of IPv4 addresses", subnet)
	}
	address := subnet.Masked().Addr()
	for range reserved {
		address = address.Next()
	}
	for ; subnet.Contains(address) && subnet.Contains(address.Next()); address = address.Next() {
		if !used[address] {
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("allocating address: %w (%s): delete machines, or use a larger subnet", ErrSubnetFull, subnet)
}

// PrivateDNSName is the name of the machine with an address, as EC2 forms it: ip-192-168-64-11.<domain>.
func PrivateDNSName(address netip.Addr, domain string) string {
	return "ip-" + strings.ReplaceAll(address.String(), ".", "-") + "." + domain
}
