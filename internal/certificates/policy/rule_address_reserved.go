// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
)

// checkAddressesReserved refuses addresses that mean somebody else, or another machine at every place.
func checkAddressesReserved(e evaluation) outcome {
	addresses := e.request.CSR.Addresses()
	if len(addresses) == 0 {
		return notApplicable("no addresses")
	}
	for _, a := range addresses {
		if why := e.policy.reservedAddress(a); why != "" {
			return refuse("nobody but its owner may have it", "the address %s is %s", a, why)
		}
	}
	return pass("none is reserved")
}

func (p Policy) reservedAddress(a netip.Addr) string {
	a = a.Unmap()
	switch {
	case !a.IsValid():
		return "none"
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast():
		return "multicast"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "broadcast"
	case a.Is4() && a.As4()[0] == 0:
		return "in 0.0.0.0/8"
	}
	for _, r := range p.ReservedAddresses {
		if r.Contains(a) {
			return "reserved (" + r.String() + ")"
		}
	}
	return ""
}
