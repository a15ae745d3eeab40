// SPDX-License-Identifier: Apache-2.0

package logfunction

import (
	"encoding/binary"
	"net/netip"

	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

func addresses() map[string]Function {
	return map[string]Function{
		"isValidIp":      ofAddress(func(netip.Addr) bool { return true }),
		"isValidIpV4":    ofAddress(netip.Addr.Is4),
		"isValidIpV6":    ofAddress(netip.Addr.Is6),
		"isIpInSubnet":   inSubnet(func(netip.Addr) bool { return true }),
		"isIpv4InSubnet": inSubnet(netip.Addr.Is4),
		"isIpv6InSubnet": inSubnet(netip.Addr.Is6),
		"isPrivateIP":    ofAddress(netip.Addr.IsPrivate),
		"isPublicIP":     ofAddress(func(a netip.Addr) bool { return a.IsGlobalUnicast() && !a.IsPrivate() }),
		"ipv4ToNumber":   plain(1, 1, addressNumber),
	}
}

func parseAddress(v logvalue.Value) (netip.Addr, bool) {
	address, err := netip.ParseAddr(v.String())
	return address, err == nil && address.Zone() == ""
}

func ofAddress(holds func(netip.Addr) bool) Function {
	return condition(1, func(a []logvalue.Value) bool {
		address, ok := parseAddress(a[0])
		return ok && holds(address)
	})
}

func inSubnet(family func(netip.Addr) bool) Function {
	return condition(2, func(a []logvalue.Value) bool {
		address, ok := parseAddress(a[0])
		subnet, err := netip.ParsePrefix(a[1].String())
		return ok && err == nil && family(address) && subnet.Contains(address)
	})
}

func addressNumber(a []logvalue.Value) logvalue.Value {
	address, ok := parseAddress(a[0])
	if !ok || !address.Is4() {
		return logvalue.Null()
	}
	four := address.As4()
	return logvalue.Number(float64(binary.BigEndian.Uint32(four[:])))
}
