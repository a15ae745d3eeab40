// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"net/netip"
	"slices"

	"muster.dev/muster/internal/certificates/policy"
)

// ranges finds the owners of ranges that contain an address, by one lookup for each length of a prefix that there is.
// Its zero value is empty.
type ranges struct {
	bits []int // the lengths
	who  map[netip.Prefix][]int32
}

func (r *ranges) add(place int32, of []netip.Prefix) {
	for _, p := range of {
		if r.who == nil {
			r.who = map[netip.Prefix][]int32{}
		}
		r.who[p] = append(r.who[p], place)
		if !slices.Contains(r.bits, p.Bits()) {
			r.bits = append(r.bits, p.Bits())
		}
	}
}

// with returns each place once.
func (r *ranges) with(address string) []int32 {
	if len(r.bits) == 0 {
		return nil
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil
	}
	var found []int32
	for _, bits := range r.bits {
		if p, err := ip.Prefix(bits); err == nil { // of the other family some lengths are none
			found = append(found, r.who[p]...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// other is one that has a range that an address is in, and is not the machine at a place.
func (r *ranges) other(address netip.Addr, than int32) (place int32, in netip.Prefix, ok bool) {
	for _, bits := range r.bits {
		p, err := address.Prefix(bits)
		if err != nil {
			continue
		}
		for _, place := range r.who[p] {
			if place != than {
				return place, p, true
			}
		}
	}
	return 0, netip.Prefix{}, false
}

// The widest ranges that a machine may have.
const (
	minRangeBits4 = 8
	minRangeBits6 = 32
)

// readRange reads a range, or says what is wrong with it.
func readRange(text string) (netip.Prefix, string) {
	p, err := netip.ParsePrefix(text)
	least := minRangeBits4
	if p.Addr().Is6() {
		least = minRangeBits6
	}
	switch {
	case err != nil || p.Addr().Is4In6():
		return p, fmt.Sprintf("%q is not a range of addresses such as 10.0.3.0/24", clipped(text))
	case p != p.Masked():
		return p, fmt.Sprintf("%s begins in the middle of a range; write %s", p, p.Masked())
	case p.IsSingleIP():
		return p, fmt.Sprintf("%s is one address; write it under addresses", p)
	case p.Bits() < least:
		return p, fmt.Sprintf("%s is too wide; use /%d or longer", p, least)
	case p.Addr().IsLoopback(), p.Addr().IsMulticast(), p.Addr().IsLinkLocalUnicast(), p.Addr().IsUnspecified():
		return p, fmt.Sprintf("%s holds no addresses of machines", p)
	}
	return p, ""
}

// common are the addresses and ranges that two sources both give a machine: an address that is its own in one of them
// and in a range of the other is its own, and of two ranges one of which is in the other the narrower one is left.
func common(a, b policy.Machine) (addresses []netip.Addr, narrower []netip.Prefix) {
	within := func(m policy.Machine, ip netip.Addr) bool {
		_, ok := m.RangeOf(ip.String())
		return ok || slices.Contains(m.Addresses, ip)
	}
	addresses = make([]netip.Addr, 0)
	for _, ip := range slices.Concat(a.Addresses, b.Addresses) {
		if within(a, ip) && within(b, ip) && !slices.Contains(addresses, ip) {
			addresses = append(addresses, ip)
		}
	}
	for _, p := range a.Ranges {
		for _, q := range b.Ranges {
			if !p.Overlaps(q) {
				continue
			}
			if q.Bits() < p.Bits() {
				q = p
			}
			if !slices.Contains(narrower, q) {
				narrower = append(narrower, q)
			}
		}
	}
	return addresses, narrower
}
