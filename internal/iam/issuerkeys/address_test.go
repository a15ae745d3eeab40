// SPDX-License-Identifier: Apache-2.0

package issuerkeys

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hostOf is a host with addresses of its own, and with routes to all others of the kinds given. As in a kernel, the
// longest prefix decides.
func hostOf(own string, kinds map[string]int) func(netip.Addr) (int, error) {
	return func(a netip.Addr) (int, error) {
		if a == netip.MustParseAddr(own) {
			return unix.RTN_LOCAL, nil
		}
		longest, found := -1, 0
		for text, kind := range kinds {
			if prefix := netip.MustParsePrefix(text); prefix.Contains(a) && prefix.Bits() > longest {
				longest, found = prefix.Bits(), kind
			}
		}
		if longest < 0 {
			return 0, unix.ENETUNREACH
		}
		return found, nil
	}
}

func TestRefuse(t *testing.T) {
	everywhere := hostOf("203.0.113.9", map[string]int{"203.0.113.255/32": unix.RTN_BROADCAST, "0.0.0.0/1": unix.RTN_UNICAST, "128.0.0.0/1": unix.RTN_UNICAST, "::/0": unix.RTN_UNICAST})
	for address, want := range map[string]string{
		"93.184.216.34": "", "10.1.2.3": "", "2606:2800:220:1::1": "", "64:ff9b::5db8:d822": "", "2002:5db8:d822::1": "",
		"127.0.0.1": "loopback", "127.93.14.201": "loopback", "::1": "loopback", "169.254.169.254": "loopback", "fe80::1": "loopback", "fd00:ec2::254": "loopback",
		"0.0.0.0": "loopback", "::": "loopback", "0.1.2.3": "loopback", "64:ff9b::7f00:1": "loopback", "64:ff9b::a9fe:a9fe": "loopback", "2002:7f00:1::1": "loopback",
		"::7f00:1": "loopback", "::a9fe:a9fe": "loopback", "224.0.0.1": "loopback", "ff02::1": "loopback", "255.255.255.255": "loopback",
		"::ffff:127.0.0.1": "loopback", "::ffff:169.254.169.254": "loopback",
		"203.0.113.9": "this host's own", "::ffff:203.0.113.9": "this host's own", "64:ff9b::cb00:7109": "this host's own", "2002:cb00:7109::1": "this host's own",
		"203.0.113.255": "not one host's",
	} {
		if got := refuse(netip.MustParseAddr(address), everywhere); (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%s: %v, want %q", address, got, want)
		}
	}
	onlyIPv6 := hostOf("2001:db8::1", map[string]int{"::/0": unix.RTN_UNICAST})
	for address, want := range map[string]string{"64:ff9b::5db8:d822": "", "2001:db8::1": "this host's own", "93.184.216.34": "finding route"} {
		if got := refuse(netip.MustParseAddr(address), onlyIPv6); (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%s of a host without IPv4: %v, want %q", address, got, want)
		}
	}
}

// The kernel knows the host's addresses, loopback or not: nothing that listens there is asked.
func TestHostIsNotAsked(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range addresses {
		prefix, err := netip.ParsePrefix(own.String())
		if err != nil || prefix.Addr().IsLinkLocalUnicast() {
			continue
		}
		kind, err := routeKind(prefix.Addr())
		if err != nil || kind != unix.RTN_LOCAL {
			t.Errorf("%s: route kind %d, %v; want %d", prefix.Addr(), kind, err, unix.RTN_LOCAL)
		}
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(prefix.Addr().String(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		asked := false
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.NotFoundHandler(), ConnState: func(net.Conn, http.ConnState) { asked = true }}}
		server.StartTLS()
		_, _, err = newGetter(Config{Refuse: RefuseAddress})(t.Context(), server.URL)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), "issuers must be on other hosts") || asked {
			t.Errorf("%s: %v, asked: %v", prefix.Addr(), err, asked)
		}
	}
}
