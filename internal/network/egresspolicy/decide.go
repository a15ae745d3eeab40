// SPDX-License-Identifier: Apache-2.0

package egresspolicy

import "net/netip"

// Refusal says why an address is not reached; empty if it may be. It is a constant, good for a metric's label.
type Refusal string

// Refusals.
const (
	RefusedClosed   Refusal = "egress-none"
	RefusedFamily   Refusal = "not-ipv4"
	RefusedReserved Refusal = "reserved-range"
	RefusedVPC      Refusal = "vpc-range"
	RefusedPrivate  Refusal = "private-range"
	RefusedDenied   Refusal = "denied-range"
	RefusedHost     Refusal = "host-address"
)

// Refuse decides about a destination. own are the ranges of the VPC and of its pods, whose addresses mean somebody else
// outside. Whether the address is one of the host's is for the caller to find out.
func (p Policy) Refuse(destination netip.Addr, own []netip.Prefix) Refusal {
	destination = destination.Unmap()
	switch {
	case !p.IsOpen():
		return RefusedClosed
	case !destination.Is4():
		return RefusedFamily
	case longest(never, destination) >= 0:
		return RefusedReserved
	case longest(own, destination) >= 0:
		return RefusedVPC
	}
	allowed, denied, others := longest(p.Allowed, destination), longest(p.Denied, destination), longest(private, destination)
	switch {
	case denied >= 0 && denied >= allowed:
		return RefusedDenied
	case others >= 0 && others > allowed:
		return RefusedPrivate
	}
	return ""
}

// longest is the length of the most specific range that contains an address, or -1.
func longest(ranges []netip.Prefix, address netip.Addr) int {
	bits := -1
	for _, r := range ranges {
		if r.Contains(address) {
			bits = max(bits, r.Bits())
		}
	}
	return bits
}
