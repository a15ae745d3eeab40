// SPDX-License-Identifier: Apache-2.0

package egresspolicy

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

var ownRanges = []netip.Prefix{netip.MustParsePrefix("172.31.0.0/16"), netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("203.0.113.128/25")}

func parse(t *testing.T, mode, allowed, denied string) Policy {
	t.Helper()
	p, err := Parse(mode, strings.Fields(allowed), strings.Fields(denied))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRefuse(t *testing.T) {
	for _, c := range []struct {
		name, allowed, denied string
		want                  map[string]Refusal
	}{
		{"nothing listed", "", "", map[string]Refusal{
			"1.1.1.1": "", "198.18.0.7": "", "9.255.255.255": "", "11.0.0.0": "", "172.15.255.255": "", "172.32.0.0": "", "192.167.255.255": "", "192.169.0.0": "",
			"100.63.255.255": "", "100.128.0.0": "", "169.253.255.255": "", "169.255.0.0": "", "223.255.255.255": "", "192.0.1.0": "", "::ffff:1.1.1.1": "",
			"0.0.0.0": RefusedReserved, "0.1.2.3": RefusedReserved, "127.0.0.1": RefusedReserved, "127.255.255.254": RefusedReserved,
			"169.254.0.1": RefusedReserved, "169.254.169.254": RefusedReserved, "224.0.0.1": RefusedReserved, "239.255.255.255": RefusedReserved,
			"240.0.0.1": RefusedReserved, "255.255.255.255": RefusedReserved, "192.0.0.192": RefusedReserved, "168.63.129.16": RefusedReserved, "168.63.129.17": "",
			"10.0.0.0": RefusedPrivate, "10.255.255.255": RefusedPrivate, "172.16.0.0": RefusedPrivate, "192.168.255.255": RefusedPrivate,
			"100.64.0.0": RefusedPrivate, "100.127.255.255": RefusedPrivate, "100.100.100.200": RefusedReserved,
			"172.31.0.2": RefusedVPC, "10.244.7.9": RefusedVPC, "203.0.113.128": RefusedVPC, "203.0.113.127": "",
			"::ffff:127.0.0.1": RefusedReserved, "::ffff:169.254.169.254": RefusedReserved, "::ffff:10.0.0.1": RefusedPrivate,
			"::1": RefusedFamily, "fe80::1": RefusedFamily, "2606:4700:4700::1111": RefusedFamily, "::": RefusedFamily, "64:ff9b::a00:1": RefusedFamily, "::7f00:1": RefusedFamily,
		}},
		{"a private range", "10.20.0.0/16", "", map[string]Refusal{"10.20.1.1": "", "10.21.0.0": RefusedPrivate, "192.168.0.1": RefusedPrivate, "1.1.1.1": ""}},
		{"a whole private range", "10.0.0.0/8", "", map[string]Refusal{"10.1.1.1": "", "10.244.0.1": RefusedVPC, "192.168.0.1": RefusedPrivate}},
		{"everything does not mean private ranges", "0.0.0.0/0 10.0.0.0/7", "", map[string]Refusal{"10.1.1.1": RefusedPrivate, "1.1.1.1": "", "127.0.0.1": RefusedReserved}},
		{"shared addresses, but for metadata", "100.64.0.0/10", "", map[string]Refusal{"100.100.100.200": RefusedReserved, "100.100.100.201": ""}},
		{"a hole", "", "1.1.1.0/24", map[string]Refusal{"1.1.1.1": RefusedDenied, "1.1.2.1": "", "10.0.0.1": RefusedPrivate}},
		{"a hole in a private range", "10.20.0.0/16", "10.20.5.0/24", map[string]Refusal{"10.20.5.1": RefusedDenied, "10.20.6.1": ""}},
		{"both lists", "10.20.0.0/16", "10.20.0.0/16", map[string]Refusal{"10.20.5.1": RefusedDenied}},
		{"a way out to one place", "203.0.113.0/24", "0.0.0.0/0", map[string]Refusal{"203.0.113.1": "", "203.0.113.129": RefusedVPC, "1.1.1.1": RefusedDenied, "10.0.0.1": RefusedDenied}},
	} {
		p := parse(t, "NAT", c.allowed, c.denied)
		for address, want := range c.want {
			if got := p.Refuse(netip.MustParseAddr(address), ownRanges); got != want {
				t.Errorf("%s: %s: %q, want %q", c.name, address, got, want)
			}
		}
		for _, mode := range []Mode{None, ""} {
			p.Mode = mode
			if got := p.Refuse(netip.MustParseAddr("1.1.1.1"), nil); got != RefusedClosed {
				t.Errorf("%s: mode %q: %q", c.name, mode, got)
			}
		}
	}
	if got := (Policy{Mode: NAT}).Refuse(netip.Addr{}, nil); got != RefusedFamily {
		t.Errorf("no address: %q", got)
	}
}

func TestParseRefuses(t *testing.T) {
	many := strings.Split(strings.Repeat("1.1.1.1/32 ", MaxRanges)+"2.2.2.2/32", " ")
	for _, c := range []struct {
		mode            string
		allowed, denied []string
		want            string
	}{
		{"nat", nil, nil, `egress.mode is "nat"`},
		{"NAT", []string{"10.0.0.1"}, nil, `egress.allowedRanges[0] is "10.0.0.1"`},
		{"NAT", []string{"1.1.1.1/32", "10.0.0.1/8"}, nil, `egress.allowedRanges[1] is "10.0.0.1/8"`},
		{"NAT", nil, []string{"fd00::/8"}, `egress.deniedRanges[0] is "fd00::/8"`},
		{"NAT", nil, []string{"::ffff:10.0.0.0/104"}, `egress.deniedRanges[0]`},
		{"NAT", []string{"169.254.169.254/32"}, nil, "nothing in 169.254.0.0/16 can be reached"},
		{"NAT", []string{"127.0.0.0/8"}, nil, "nothing in 127.0.0.0/8"},
		{"None", many, nil, "egress.allowedRanges has 65 ranges: 64 at most"},
		{"None", nil, many, "egress.deniedRanges has 65 ranges: 64 at most"},
	} {
		if _, err := Parse(c.mode, c.allowed, c.denied); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %v %v: %v, want %s", c.mode, c.allowed, c.denied, err, c.want)
		}
	}
}

func TestPolicyOnDisk(t *testing.T) {
	p := parse(t, "NAT", "10.20.0.0/16", "1.1.1.0/24")
	raw, err := json.Marshal(p)
	if err != nil || string(raw) != `{"mode":"NAT","allowedRanges":["10.20.0.0/16"],"deniedRanges":["1.1.1.0/24"]}` {
		t.Fatalf("%s, %v", raw, err)
	}
	var again Policy
	if err := json.Unmarshal(raw, &again); err != nil || !again.Equal(p) {
		t.Errorf("%+v, %v", again, err)
	}
	if again.Equal(Policy{Mode: NAT}) || !(Policy{}).Equal(Policy{Mode: None}) {
		t.Error("policies are compared wrongly")
	}
}

// Whatever lists say, what is never reached is not, in no form of an address; and a policy that is taken is the same in
// every form.
func FuzzRefuse(f *testing.F) {
	f.Add("10.20.0.0/16", "0.0.0.0/0", []byte{10, 20, 0, 1})
	f.Add("0.0.0.0/0", "", []byte{127, 0, 0, 1})
	f.Add("169.0.0.0/8", "1.1.1.1/32", []byte{169, 254, 169, 254})
	f.Fuzz(func(t *testing.T, allowed, denied string, raw []byte) {
		if len(raw) != 4 {
			return
		}
		p, err := Parse("NAT", strings.Fields(allowed), strings.Fields(denied))
		if err != nil {
			return
		}
		address := netip.AddrFrom4([4]byte(raw))
		got := p.Refuse(address, nil)
		if mapped := p.Refuse(netip.AddrFrom16(address.As16()), nil); mapped != got {
			t.Errorf("%s: %q, mapped %q", address, got, mapped)
		}
		if got == "" && (address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsMulticast() || address.IsUnspecified()) {
			t.Errorf("%s may be reached by %+v", address, p)
		}
		if got == "" && address.IsPrivate() && len(p.Allowed) == 0 {
			t.Errorf("%s may be reached without being listed", address)
		}
	})
}
