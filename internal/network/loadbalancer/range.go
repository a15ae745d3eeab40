// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// DefaultRange is what addresses on the host are chosen from unless the account says otherwise. The account's own
// address is in another part of the loopback.
var DefaultRange = netip.MustParsePrefix("127.128.0.0/10")

// A range has from 2 to 16 million addresses.
const minBits, maxBits = 8, 30

// reserved are the ranges that no balancer has an address of.
var reserved = []struct {
	prefix netip.Prefix
	is     string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "stands for all addresses of the host"},
	{netip.MustParsePrefix("127.0.0.0/16"), "has 127.0.0.1, where programs of the host listen"},
	{netip.MustParsePrefix("169.254.0.0/16"), "is link-local"},
	{netip.MustParsePrefix("224.0.0.0/3"), "is multicast or reserved"},
}

// ParseRange reads a range that addresses on the host can be chosen from.
func ParseRange(text string) (netip.Prefix, error) {
	within, err := netip.ParsePrefix(text)
	if err != nil || !within.Addr().Is4() {
		return netip.Prefix{}, fmt.Errorf("invalid range %q: must be one of IPv4, such as %s", text, DefaultRange)
	}
	if within.Bits() < minBits || within.Bits() > maxBits {
		return netip.Prefix{}, fmt.Errorf("invalid range %s: must be from /%d to /%d", within, minBits, maxBits)
	}
	if within != within.Masked() {
		return netip.Prefix{}, fmt.Errorf("invalid range %s: it begins at another address; write %s", within, within.Masked())
	}
	for _, r := range reserved {
		if r.prefix.Overlaps(within) {
			return netip.Prefix{}, fmt.Errorf("invalid range %s: it overlaps %s, which %s", within, r.prefix, r.is)
		}
	}
	return within, nil
}

// checkHostAddress refuses an address on the host that no range has. The range that it was chosen from is not compared,
// since the range may have changed since.
func checkHostAddress(address netip.Addr) error {
	if !address.Is4() {
		return fmt.Errorf("its address on the host %s is not one of IPv4", address)
	}
	for _, r := range reserved {
		if r.prefix.Contains(address) {
			return fmt.Errorf("its address on the host %s is in %s, which %s", address, r.prefix, r.is)
		}
	}
	return nil
}

// ErrRangeFull means that every address of the range is taken.
var ErrRangeFull = errors.New("no address is left for load balancers on the host")

// HostAddress chooses an address on the host for the Service with a UID: the first one from where its UID falls in the
// range that is not taken. The range's first and last addresses, and those that end in 0 and 255, are left out: they
// may be a network's and its broadcasts'.
func HostAddress(within netip.Prefix, uid string, taken func(netip.Addr) bool) (netip.Addr, error) {
	first, size := within.Masked().Addr().As4(), uint64(1)<<(32-within.Bits())
	base := uint64(binary.BigEndian.Uint32(first[:]))
	sum := sha256.Sum256([]byte(uid))
	start := binary.BigEndian.Uint64(sum[:]) % size
	for i := range size {
		at := (start + i) % size
		var raw [4]byte
		binary.BigEndian.PutUint32(raw[:], uint32(base+at)) //nolint:gosec // G115: it is in the range, which is one of IPv4
		address := netip.AddrFrom4(raw)
		if at == 0 || at == size-1 || raw[3] == 0 || raw[3] == 255 || taken(address) {
			continue
		}
		return address, nil
	}
	return netip.Addr{}, fmt.Errorf("%w: all of %s are taken", ErrRangeFull, within)
}
