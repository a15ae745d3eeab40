// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"
	"time"

	"muster.dev/muster/internal/certificates/pki"
)

// Machine is what the inventory says about one machine: nothing in it comes from the machine itself.
type Machine struct {
	ID        string
	NodeName  string // "" until the provider has assigned one
	Names     []string
	Addresses []netip.Addr
	// Ranges are networks of which it may have any address that is not a machine's own. Other machines may have the
	// same ones.
	Ranges   []netip.Prefix
	Deleting bool
	// Group that it belongs to, such as its node group, "" if the source knows none.
	Group string
	// Created is when the machine was made, zero if the source does not know.
	Created time.Time
}

// CertifiedFrom is the earliest moment from which a certificate that the machine got can be good, zero if nobody knows
// when it was made.
func (m Machine) CertifiedFrom() time.Time {
	if m.Created.IsZero() {
		return time.Time{}
	}
	return m.Created.Add(-pki.Backdate - createdSkew)
}

// Owns reports whether a name or an address, in text, is the machine's own.
func (m Machine) Owns(name string) bool {
	return name != "" && (m.NodeName == name || slices.Contains(m.Names, name) ||
		slices.ContainsFunc(m.Addresses, func(a netip.Addr) bool { return a.Unmap().String() == name }))
}

// RangeOf is the one of its ranges that an address, in text, is in.
func (m Machine) RangeOf(address string) (netip.Prefix, bool) {
	if len(m.Ranges) == 0 {
		return netip.Prefix{}, false
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, false
	}
	for _, r := range m.Ranges {
		if r.Contains(ip) {
			return r, true
		}
	}
	return netip.Prefix{}, false
}

// OwnersOf returns the IDs of the machines that own a name or an address; if no machine owns it, of those that may have
// it by a range.
func OwnersOf(name string, machines []Machine) []string {
	var own, ranged []string
	for _, m := range machines {
		if m.Owns(name) {
			own = append(own, m.ID)
		} else if _, ok := m.RangeOf(name); ok {
			ranged = append(ranged, m.ID)
		}
	}
	if len(own) > 0 {
		return own
	}
	return ranged
}
