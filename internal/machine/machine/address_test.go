// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/machine"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestAllocate(t *testing.T) {
	for name, test := range map[string]struct {
		subnet   string
		used     []string
		pods     int
		want     string
		podRange string
	}{
		"first":               {subnet: "172.31.16.0/20", want: "172.31.16.4"},
		"lowest free":         {subnet: "172.31.16.0/20", used: []string{"172.31.16.4/32", "172.31.16.6/32"}, want: "172.31.16.5"},
		"of a small subnet":   {subnet: "10.0.0.16/28", want: "10.0.0.20"},
		"last":                {subnet: "10.0.0.24/29", used: []string{"10.0.0.28/32", "10.0.0.29/32"}, want: "10.0.0.30"},
		"never the broadcast": {subnet: "10.0.0.24/29", used: []string{"10.0.0.28/32", "10.0.0.29/32", "10.0.0.30/32"}},
		"too small":           {subnet: "10.0.0.16/30"},
		"IPv6":                {subnet: "fd00::/64"},
		"beside other ranges": {subnet: "10.0.0.0/24", used: []string{"10.0.0.4/30", "10.0.1.8/30", "10.0.0.8/32"}, want: "10.0.0.9"},
		"pods":                {subnet: "172.31.0.0/20", pods: 110, want: "172.31.0.4", podRange: "172.31.15.128/25"},
		"more pods":           {subnet: "172.31.0.0/20", pods: 126, want: "172.31.0.4", podRange: "172.31.15.0/24"},
		"17 pods":             {subnet: "172.31.0.0/20", pods: 17, want: "172.31.0.4", podRange: "172.31.15.224/27"},
		"below the last":      {subnet: "172.31.0.0/20", pods: 17, used: []string{"172.31.15.224/27"}, want: "172.31.0.4", podRange: "172.31.15.192/27"},
		"what was freed":      {subnet: "172.31.0.0/20", pods: 17, used: []string{"172.31.15.192/27"}, want: "172.31.0.4", podRange: "172.31.15.224/27"},
		"aligned":             {subnet: "172.31.0.0/20", pods: 110, used: []string{"172.31.15.224/27"}, want: "172.31.0.4", podRange: "172.31.15.0/25"},
		"over an address":     {subnet: "10.0.0.0/26", pods: 17, used: []string{"10.0.0.40/32"}},
		"over its last one":   {subnet: "10.0.0.0/25", pods: 17, used: []string{"10.0.0.127/32"}, want: "10.0.0.4", podRange: "10.0.0.64/27"},
		"a small subnet":      {subnet: "10.0.0.0/26", pods: 17, want: "10.0.0.4", podRange: "10.0.0.32/27"},
		"never the first":     {subnet: "10.0.0.0/26", pods: 17, used: []string{"10.0.0.32/27"}},
		"larger than all":     {subnet: "10.0.0.0/26", pods: 110},
		"no address beside":   {subnet: "10.0.0.0/29", pods: 1, used: prefixTexts("10.0.0.4")},
	} {
		t.Run(name, func(t *testing.T) {
			got, podRange, err := machine.Allocate(netip.MustParsePrefix(test.subnet), prefixes(test.used...), test.pods)
			switch {
			case test.want == "" && err == nil:
				t.Errorf("got %s and %s, want an error", got, podRange)
			case test.want != "" && err != nil:
				t.Error(err)
			case test.want != "" && (got.String() != test.want || podRange.IsValid() != (test.podRange != "") || podRange.IsValid() && podRange.String() != test.podRange):
				t.Errorf("got %s and %s, want %s and %s", got, podRange, test.want, test.podRange)
			}
		})
	}
}

func prefixTexts(addresses ...string) []string {
	var all []string
	for _, address := range addresses {
		all = append(all, address+"/32")
	}
	return all
}

// Whatever comes and goes in a subnet: what is given is of the subnet, aligned, of the size that the pods need, nobody
// else's and no reserved address; a subnet is full only when nothing fits; and when all is given back all can be had
// again.
func TestAllocations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subnet := netip.MustParsePrefix(rapid.SampledFrom([]string{"10.0.0.0/24", "10.0.3.64/26", "172.31.16.0/22", "10.0.0.0/28"}).Draw(t, "subnet"))
		var used []netip.Prefix
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(used) > 0 && rapid.IntRange(0, 3).Draw(t, "free") == 0 {
				at := rapid.IntRange(0, len(used)-1).Draw(t, "which")
				used = slices.Delete(used, at, at+1)
				continue
			}
			pods := rapid.SampledFrom([]int{0, 0, 1, 4, 13, 14, 29, 30, 110}).Draw(t, "pods")
			address, podRange, err := machine.Allocate(subnet, used, pods)
			if err != nil {
				if !errors.Is(err, machine.ErrSubnetFull) {
					t.Fatal(err)
				}
				if fits(subnet, used, pods) {
					t.Fatalf("%s is full for %d pods with %v", subnet, pods, used)
				}
				continue
			}
			given := []netip.Prefix{netip.PrefixFrom(address, 32)}
			if pods > 0 {
				given = append(given, podRange)
				if size := 1 << (32 - podRange.Bits()); podRange.Masked() != podRange || size < pods+3 || size/2 >= pods+3 {
					t.Fatalf("%d pods have %s", pods, podRange)
				}
			}
			for i, one := range given {
				if !subnet.Contains(one.Addr()) || one.Overlaps(netip.PrefixFrom(subnet.Addr(), 30)) || slices.ContainsFunc(append(slices.Clone(used), given[:i]...), one.Overlaps) {
					t.Fatalf("%s of %s beside %v", one, subnet, used)
				}
			}
			if !subnet.Contains(address.Next()) {
				t.Fatalf("%s is the last one of %s", address, subnet)
			}
			used = append(used, given...)
		}
		if address, podRange, err := machine.Allocate(subnet, nil, 4); err != nil || address != subnet.Addr().Next().Next().Next().Next() || !podRange.Contains(last(subnet)) {
			t.Fatalf("with all given back: %s, %s, %v", address, podRange, err)
		}
	})
}

func last(subnet netip.Prefix) netip.Addr {
	address := subnet.Addr()
	for subnet.Contains(address.Next()) {
		address = address.Next()
	}
	return address
}

// fits looks for an address and a range by trying all.
func fits(subnet netip.Prefix, used []netip.Prefix, pods int) bool {
	taken := append(slices.Clone(used), netip.PrefixFrom(subnet.Addr(), 30))
	var ranges []netip.Prefix
	if pods == 0 {
		ranges = append(ranges, netip.Prefix{})
	}
	single := []netip.Addr{}
	for address := subnet.Addr(); subnet.Contains(address); address = address.Next() {
		r := netip.PrefixFrom(address, machine.PodRangeBits(pods))
		if pods > 0 && r.Masked() == r && r.Bits() >= subnet.Bits() && !slices.ContainsFunc(taken, r.Overlaps) {
			ranges = append(ranges, r)
		}
		if subnet.Contains(address.Next()) && !slices.ContainsFunc(taken, func(u netip.Prefix) bool { return u.Contains(address) }) {
			single = append(single, address)
		}
	}
	if len(ranges) == 0 {
		return false
	}
	highest := ranges[len(ranges)-1]
	return slices.ContainsFunc(single, func(a netip.Addr) bool { return !highest.IsValid() || !highest.Contains(a) })
}
