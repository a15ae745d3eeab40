// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"net/netip"
	"strings"
)

// reserved addresses at the start of a VPC are its network address, the router, the ENI, and room for more of that kind.
const reserved = 11

// Allocate chooses the lowest address of a VPC that no machine has: the eleventh after the network address, or a later one.
// The last address is the broadcast address and belongs to nobody.
func Allocate(vpc netip.Prefix, used map[netip.Addr]bool) (netip.Addr, error) {
	if !vpc.IsValid() || !vpc.Addr().Is4() {
		return netip.Addr{}, fmt.Errorf("allocating address: %s is not a range of IPv4 addresses", vpc)
	}
	address := vpc.Masked().Addr()
	for range reserved {
		address = address.Next()
	}
	for ; vpc.Contains(address) && vpc.Contains(address.Next()); address = address.Next() {
		if !used[address] {
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("allocating address: all addresses of the VPC (%s) are taken: delete machines, or make the cluster with a larger vpcCIDR", vpc)
}

// PrivateDNSName is the name of the machine with an address, as EC2 forms it: ip-192-168-64-11.<domain>.
func PrivateDNSName(address netip.Addr, domain string) string {
	return "ip-" + strings.ReplaceAll(address.String(), ".", "-") + "." + domain
}
