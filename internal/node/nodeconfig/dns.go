// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"fmt"
	"net/netip"
)

// ClusterDNS is the address of the cluster's DNS service: the tenth after the service network's own, in IPv4 and IPv6.
//
// nodeadm replaces the text after the last dot by 10, or puts an a at the end of IPv6's (amazon-eks-ami,
// nodeadm/internal/api/net.go). The result is the same for ranges that end with a zero octet. For other ranges it may
// be outside of them: it is 172.20.0.10 for 172.20.0.16/28. In IPv6 the results are the same for all ranges that end
// with "::".
func ClusterDNS(serviceCIDR netip.Prefix) (netip.Addr, error) {
	if !serviceCIDR.IsValid() {
		return netip.Addr{}, fmt.Errorf("there is no service CIDR to take an address for DNS from")
	}
	address := serviceCIDR.Masked().Addr()
	for range 10 {
		address = address.Next()
	}
	if !serviceCIDR.Contains(address) {
		size := "/28"
		if address.Is6() || serviceCIDR.Addr().Is6() {
			size = "/124"
		}
		return netip.Addr{}, fmt.Errorf("service CIDR %s has no tenth address for DNS: choose a %s or larger", serviceCIDR, size)
	}
	return address, nil
}
