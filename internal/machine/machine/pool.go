// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// reserved is how many addresses at the start of a subnet belong to no machine, as on EC2: the network address, the
// router, the resolver (of the VPC, which is in its first subnet), and one for later. The last address is the broadcast
// address.
const reserved = 4

// pool is what is left of a subnet: single addresses are taken from its low end and ranges for pods from its high end,
// so that neither breaks the other's room into pieces.
type pool struct {
	name        string // for errors
	subnet      netip.Prefix
	first, last uint32
	used        []span // sorted, none beside or over another
}

type span struct{ first, last uint32 }

// newPool makes the pool of a subnet, some of whose addresses and ranges are used. Used ranges outside the subnet do
// not count.
func newPool(subnet netip.Prefix, used []netip.Prefix) (*pool, error) {
	if !subnet.IsValid() || !subnet.Addr().Is4() || subnet.Bits() == 0 {
		return nil, fmt.Errorf("allocating address: %s is not a range of IPv4 addresses", subnet)
	}
	whole := spanOf(subnet)
	p := &pool{name: subnet.String(), subnet: subnet, first: whole.first, last: whole.last}
	p.use(span{p.first, min(p.first+reserved-1, p.last)})
	for _, one := range used {
		if one.IsValid() && one.Overlaps(subnet) {
			s := spanOf(one)
			p.use(span{max(s.first, p.first), min(s.last, p.last)})
		}
	}
	return p, nil
}

func spanOf(prefix netip.Prefix) span {
	raw := prefix.Masked().Addr().As4()
	first := binary.BigEndian.Uint32(raw[:])
	return span{first, first | (1<<(32-prefix.Bits()) - 1)}
}

// use notes that addresses are used. Some of them may be noted already.
func (p *pool) use(s span) {
	from, _ := slices.BinarySearchFunc(p.used, s.first, func(a span, first uint32) int {
		if a.last < first && first-a.last > 1 {
			return -1
		}
		return 1
	})
	to := from
	for ; to < len(p.used) && (p.used[to].first <= s.last || p.used[to].first-s.last == 1); to++ {
		s = span{min(s.first, p.used[to].first), max(s.last, p.used[to].last)}
	}
	p.used = slices.Replace(p.used, from, to, s)
}

// address takes the lowest address that nobody has.
func (p *pool) address() (netip.Addr, error) {
	candidate := p.used[0].last + 1 // the first span begins where the subnet does
	if p.used[0].last >= p.last || candidate >= p.last {
		return netip.Addr{}, fmt.Errorf("allocating address: %w (%s): delete machines, or use a larger subnet", ErrSubnetFull, p.name)
	}
	p.use(span{candidate, candidate})
	return addressOf(candidate), nil
}

// podRange takes the highest range of a size that nobody has any of. Its last address may be the subnet's, which is no
// pod's either.
func (p *pool) podRange(bits int) (netip.Prefix, error) {
	full := fmt.Errorf("%w (%s): no /%d of it is left: delete machines, use a larger subnet, or let a node have fewer pods", ErrPodsFull, p.name, bits)
	if bits < p.subnet.Bits() || bits > 32 {
		return netip.Prefix{}, full
	}
	size := uint32(1) << (32 - bits)
	candidate := p.last - (size - 1)
	for i := len(p.used) - 1; i >= 0 && p.used[i].last >= candidate; i-- {
		if p.used[i].first > candidate+(size-1) {
			continue
		}
		below := p.used[i].first &^ (size - 1)
		if below < p.first+size {
			return netip.Prefix{}, full
		}
		candidate = below - size
	}
	p.use(span{candidate, candidate + (size - 1)})
	return netip.PrefixFrom(addressOf(candidate), bits), nil
}

func addressOf(number uint32) netip.Addr {
	var raw [4]byte
	binary.BigEndian.PutUint32(raw[:], number)
	return netip.AddrFrom4(raw)
}

// free is how many addresses nobody has.
func (p *pool) free() int {
	free := int(p.last-p.first) + 1
	for _, s := range p.used {
		free -= int(s.last-s.first) + 1
	}
	if p.used[len(p.used)-1].last < p.last {
		free-- // the last one, which is nobody's
	}
	return free
}

// notForPods are the addresses of a node's range that no pod has: the first and the last one, and that of the node in
// it.
const notForPods = 3

// PodRangeBits is the length of the prefix of the smallest range that has addresses for a number of pods.
func PodRangeBits(pods int) int {
	bits := 32
	for bits > 0 && 1<<(32-bits) < pods+notForPods {
		bits--
	}
	return bits
}
