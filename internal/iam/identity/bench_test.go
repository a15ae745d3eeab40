// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"fmt"
	"testing"

	"muster.dev/muster/internal/iam/identity"
)

func manyMappings(n int) []identity.Mapping {
	out := make([]identity.Mapping, n)
	for i := range out {
		out[i] = awsAuth(role(fmt.Sprintf("Role-%d", i)), "team:{{SessionName}}", "a", "b")
		out[i].Entry = fmt.Sprintf("mapRoles[%d]", i)
	}
	return out
}

func BenchmarkMap(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		made := table(b, identity.Options{}, []identity.AccessEntry{{Name: "n", PrincipalARN: role("nodes"), Type: identity.TypeEC2Linux}}, manyMappings(n)...)
		for name, who := range map[string]identity.Principal{
			"person": session(b, fmt.Sprintf("Role-%d", n-1), "anna"), "node": session(b, "nodes", node, proven(node, dnsName)), "nobody": session(b, "nobody", "anna"),
		} {
			b.Run(fmt.Sprintf("%s of %d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					made.Map(who)
				}
			})
		}
	}
}

// The cost of a hit must not grow with the table.
func TestTheCostOfAHitDoesNotGrow(t *testing.T) {
	cost := func(n int) float64 {
		made := table(t, identity.Options{}, nil, manyMappings(n)...)
		who := session(t, fmt.Sprintf("Role-%d", n-1), "anna")
		return testing.AllocsPerRun(100, func() { made.Map(who) })
	}
	if few, many := cost(10), cost(5000); many > few || few > 12 {
		t.Errorf("%v allocations among 10 entries, %v among 5000; want the same, and at most 12", few, many)
	}
}
