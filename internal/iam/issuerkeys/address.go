// SPDX-License-Identifier: Apache-2.0

package issuerkeys

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Addresses of IPv6 that stand for one of IPv4: it begins at a byte of them.
var translated = map[netip.Prefix]int{
	netip.MustParsePrefix("64:ff9b::/96"): 12, // NAT64 (RFC 6052)
	netip.MustParsePrefix("2002::/16"):    2,  // 6to4 (RFC 3056)
	netip.MustParsePrefix("::/96"):        12, // IPv4-compatible (RFC 4291, section 2.5.5.1)
}

// RefuseAddress says why issuers cannot be at an address: it is this host's own, which the kernel is asked about, or
// has instance metadata, or is not one host's.
func RefuseAddress(a netip.Addr) error { return refuse(a, routeKind) }

// refuse is RefuseAddress with a function for the kind of the host's route to an address (RTN_UNICAST, RTN_LOCAL and so
// on).
func refuse(a netip.Addr, kind func(netip.Addr) (int, error)) error {
	a = a.Unmap()
	if !allowed(a) {
		return fmt.Errorf("address %s is loopback, link-local, multicast or reserved: issuers must be on other hosts", a)
	}
	got, err := kind(a)
	switch {
	case err != nil:
		return fmt.Errorf("finding route to %s: %w", a, err)
	case got == unix.RTN_LOCAL:
		return fmt.Errorf("address %s is this host's own: issuers must be on other hosts", a)
	case got != unix.RTN_UNICAST:
		return fmt.Errorf("address %s is not one host's: issuers must be on other hosts", a)
	}
	if inner, ok := ipv4Of(a); ok {
		got, err := kind(inner)
		switch {
		case err != nil && !errors.Is(err, unix.ENETUNREACH): // a host without IPv4 has no route, and reaches it by a translator
			return fmt.Errorf("finding route to %s, which %s stands for: %w", inner, a, err)
		case got == unix.RTN_LOCAL:
			return fmt.Errorf("address %s stands for %s, which is this host's own: issuers must be on other hosts", a, inner)
		}
	}
	return nil
}

// routeKind asks the kernel: addresses of interfaces alone leave out local routes to whole ranges (ip route add local).
func routeKind(a netip.Addr) (int, error) {
	routes, err := netlink.RouteGet(a.AsSlice())
	if err != nil {
		return 0, err
	}
	if len(routes) != 1 {
		return 0, unix.ENETUNREACH
	}
	return routes[0].Type, nil
}

// allowed reports whether an address is neither reserved nor one where this host or instance metadata is by its form.
func allowed(a netip.Addr) bool {
	if !a.IsValid() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || netip.MustParsePrefix("fd00:ec2::/32").Contains(a) {
		return false
	}
	if a.Is4() {
		return a.As4()[0] != 0 && a != netip.AddrFrom4([4]byte{255, 255, 255, 255}) // 0.0.0.0/8 is this host (RFC 1122, section 3.2.1.3)
	}
	inner, ok := ipv4Of(a)
	return !ok || allowed(inner)
}

// ipv4Of finds the address of IPv4 that one of IPv6 stands for.
func ipv4Of(a netip.Addr) (netip.Addr, bool) {
	for prefix, at := range translated {
		if raw := a.As16(); a.Is6() && prefix.Contains(a) {
			return netip.AddrFrom4([4]byte(raw[at : at+4])), true
		}
	}
	return netip.Addr{}, false
}
