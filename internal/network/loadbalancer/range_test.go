// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func none(netip.Addr) bool { return false }

func TestParseRange(t *testing.T) {
	for _, text := range []string{"127.128.0.0/10", "127.64.0.0/28", "127.1.0.0/30", "10.0.0.0/8", "198.51.100.64/30", "203.0.113.0/24"} {
		if got, err := ParseRange(text); err != nil || got.String() != text {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                    "such as 127.128.0.0/10",
		"198.51.100.7":        "such as",
		"fd00::/64":           "must be one of IPv4",
		"::ffff:10.0.0.0/104": "must be one of IPv4",
		"10.0.0.0/7":          "from /8 to /30",
		"10.0.0.0/31":         "from /8 to /30",
		"0.0.0.0/0":           "from /8 to /30",
		"10.0.0.9/24":         "write 10.0.0.0/24",
		"0.0.0.0/8":           "0.0.0.0/8",
		"0.9.0.0/16":          "0.0.0.0/8",
		"127.0.0.0/8":         "has 127.0.0.1",
		"127.0.1.0/24":        "has 127.0.0.1",
		"169.254.169.0/24":    "link-local",
		"169.0.0.0/8":         "link-local",
		"224.0.0.0/24":        "multicast",
		"240.0.0.0/8":         "reserved",
		"255.255.255.252/30":  "reserved",
	} {
		if got, err := ParseRange(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v, want %q", text, got, err, want)
		}
	}
}

func TestHostAddress(t *testing.T) {
	first, err := HostAddress(DefaultRange, "6d1a0f60", none)
	if err != nil || !DefaultRange.Contains(first) {
		t.Fatal(first, err)
	}
	if again, _ := HostAddress(DefaultRange, "6d1a0f60", none); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	second, err := HostAddress(DefaultRange, "6d1a0f60", func(a netip.Addr) bool { return a == first })
	if err != nil || second == first || !DefaultRange.Contains(second) {
		t.Errorf("the taken address %s: %s, %v", first, second, err)
	}
	seen := map[netip.Addr]bool{}
	for i := range 5000 {
		a, err := HostAddress(DefaultRange, fmt.Sprint(i), none)
		if last := a.As4()[3]; err != nil || last == 0 || last == 255 || !DefaultRange.Contains(a) {
			t.Fatalf("UID %d: %s, %v", i, a, err)
		}
		seen[a] = true
	}
	if len(seen) < 4900 {
		t.Errorf("5000 UIDs fall on %d addresses", len(seen))
	}
}

// In a small range UIDs fall on the same addresses. Each gets one of its own until all are taken.
func TestHostAddressesOfASmallRange(t *testing.T) {
	for text, want := range map[string]int{"127.64.0.0/28": 14, "198.51.100.64/30": 2, "10.9.0.0/23": 508, "203.0.113.252/30": 2} {
		within := netip.MustParsePrefix(text)
		taken := map[netip.Addr]bool{}
		for i := range want {
			a, err := HostAddress(within, fmt.Sprint("uid-", i), func(a netip.Addr) bool { return taken[a] })
			if err != nil || taken[a] || !within.Contains(a) || a == within.Addr() {
				t.Fatalf("%s, address %d of %d: %s, %v", within, i+1, want, a, err)
			}
			taken[a] = true
		}
		a, err := HostAddress(within, "one more", func(a netip.Addr) bool { return taken[a] })
		if !errors.Is(err, ErrRangeFull) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s is full: %s, %v", within, a, err)
		}
		for freed := range taken {
			a, err := HostAddress(within, "one more", func(a netip.Addr) bool { return a != freed && taken[a] })
			if err != nil || a != freed {
				t.Errorf("%s is free: %s, %v", freed, a, err)
			}
		}
	}
}
