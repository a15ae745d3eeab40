// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/instancetype"
)

func TestOrderedByStrategy(t *testing.T) {
	high, low := 2.0, 1.0
	pools := []pool{
		{override: 0, instanceType: "m5.large", priority: &high},
		{override: 1, instanceType: "x9.huge"},
		{override: 2, instanceType: "t3.small", priority: &low},
		{override: 3, instanceType: "m6i.large", priority: &low},
	}
	for strategy, want := range map[string][]int{
		lowestPrice: {2, 0, 3, 1}, priceCapacityOptimized: {2, 0, 3, 1}, prioritized: {2, 3, 0, 1}, capacityPrioritized: {2, 3, 0, 1},
		diversified: {0, 1, 2, 3}, capacityOptimized: {0, 1, 2, 3},
	} {
		for _, spot := range []bool{false, true} {
			var got []int
			for _, p := range ordered(pools, strategy, spot) {
				got = append(got, p.override)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, spot %v: %v, want %v", strategy, spot, got, want)
			}
		}
	}
}

// Whatever the pools are: none is lost, none comes twice, a strategy by price never tries a dearer pool before a cheaper
// one, and pools that are alike stay in the order of the request.
func TestOrderedIsAnOrderOfAll(t *testing.T) {
	var names []string
	for _, kind := range instancetype.All() {
		names = append(names, kind.Name)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "pools")
		pools := make([]pool, n)
		for i := range pools {
			pools[i] = pool{override: i, instanceType: rapid.SampledFrom(append(names, "", "x9.huge")).Draw(t, "type")}
			if rapid.Bool().Draw(t, "has priority") {
				pools[i].priority = new(float64(rapid.IntRange(0, 5).Draw(t, "priority")))
			}
		}
		strategy := rapid.SampledFrom([]string{lowestPrice, prioritized, diversified, capacityOptimized, capacityPrioritized, priceCapacityOptimized}).Draw(t, "strategy")
		spot := rapid.Bool().Draw(t, "spot")
		got := ordered(pools, strategy, spot)
		seen := map[int]bool{}
		for i, p := range got {
			seen[p.override] = true
			if i == 0 {
				continue
			}
			before, alike := got[i-1], true
			switch strategy {
			case lowestPrice, priceCapacityOptimized:
				if price(before, spot) > price(p, spot) {
					t.Fatalf("%v is tried before %v", before, p)
				}
				alike = price(before, spot) == price(p, spot)
			case prioritized, capacityPrioritized:
				if rank(before) > rank(p) {
					t.Fatalf("%v is tried before %v", before, p)
				}
				alike = rank(before) == rank(p)
			}
			if alike && before.override > p.override {
				t.Fatalf("%v and %v changed places", p, before)
			}
		}
		if len(seen) != n || len(got) != n {
			t.Fatalf("%d pools of %d", len(got), n)
		}
	})
}

// Each instance is bought once, on demand or as a spot instance.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int32Range(1, maxInstances).Draw(t, "total")
		c := capacity{TotalTargetCapacity: &total, DefaultTargetCapacityType: rapid.SampledFrom([]string{"", onDemand, spot}).Draw(t, "default")}
		c.OnDemandTargetCapacity = rapid.Int32Range(0, total).Draw(t, "on demand")
		c.SpotTargetCapacity = rapid.Int32Range(0, total-c.OnDemandTargetCapacity).Draw(t, "spot")
		var all []int
		for i := range int(total) {
			all = append(all, i)
		}
		first, rest := c.split(all)
		if len(first) < int(c.OnDemandTargetCapacity) || len(rest) < int(c.SpotTargetCapacity) || !slices.Equal(append(first, rest...), all) {
			t.Fatalf("%+v: %v and %v", c, first, rest)
		}
	})
}
