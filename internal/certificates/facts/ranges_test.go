// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/facts/factstest"
	"muster.dev/muster/internal/certificates/policy"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func ips(texts ...string) []netip.Addr {
	all := []netip.Addr{}
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// An address that one source knows to be a machine's own is nobody's by a range of another source, also while the one
// cannot tell.
func TestOwnersByRange(t *testing.T) {
	ranged, exact := &factstest.Source{Called: "ranged"}, &factstest.Source{Called: "exact"}
	ranged.Put(policy.Machine{ID: "r1", NodeName: "a", Ranges: prefixes("10.0.3.0/24")})
	ranged.Put(policy.Machine{ID: "r2", NodeName: "b", Ranges: prefixes("10.0.3.0/24")})
	exact.Put(policy.Machine{ID: "e", NodeName: "c", Addresses: ips("10.0.3.7")})
	for _, mode := range []facts.Mode{facts.Any, facts.All} {
		c, err := facts.Combine(mode, ranged, exact)
		if err != nil {
			t.Fatal(err)
		}
		for address, want := range map[string][]string{"10.0.3.7": {"e"}, "10.0.3.8": {"r1", "r2"}, "10.0.4.1": nil} {
			got := c.Owners(address)
			if diff := cmp.Diff(want, got.Value); got.State != policy.Known || diff != "" {
				t.Errorf("%s, %s: %+v", mode, address, got)
			}
		}
		exact.Break("the cloud does not answer")
		if got := c.Owners("10.0.3.8"); got.State != policy.Unknown {
			t.Errorf("%s: while a source cannot tell: %+v", mode, got)
		}
		exact.Break("")
	}
}

func TestRangesThatAllSay(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b      policy.Machine
		addresses []netip.Addr
		ranges    []netip.Prefix
	}{
		"an address in a range": {
			policy.Machine{Ranges: prefixes("10.0.3.0/24")}, policy.Machine{Addresses: ips("10.0.3.7", "10.0.4.7")}, ips("10.0.3.7"), nil,
		},
		"ranges in each other": {
			policy.Machine{Ranges: prefixes("10.0.0.0/16", "10.1.3.0/24")},
			policy.Machine{Ranges: prefixes("10.0.3.0/24", "10.0.4.0/24", "10.1.0.0/16", "10.2.0.0/16")},
			ips(), prefixes("10.0.3.0/24", "10.0.4.0/24", "10.1.3.0/24"),
		},
		"nothing in common": {policy.Machine{Ranges: prefixes("10.0.0.0/16")}, policy.Machine{Addresses: ips("10.1.0.1")}, ips(), nil},
	} {
		a, b := &factstest.Source{Called: "a"}, &factstest.Source{Called: "b"}
		tc.a.ID, tc.a.NodeName, tc.b.ID, tc.b.NodeName = "a", "n", "b", "n"
		a.Put(tc.a)
		b.Put(tc.b)
		c, err := facts.Combine(facts.All, a, b)
		if err != nil {
			t.Fatal(err)
		}
		got := c.MachineOfNode("n").Value
		equal := cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})
		if diff := cmp.Diff(tc.addresses, got.Addresses, equal) + cmp.Diff(tc.ranges, got.Ranges, equal); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
