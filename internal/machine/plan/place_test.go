// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/plan"
)

// room has as many machines in each subnet as it is told.
func room(free map[string]int) func(string) bool {
	left := maps.Clone(free)
	return func(id string) bool {
		left[id]--
		return left[id] >= 0
	}
}

func TestPlace(t *testing.T) {
	for name, test := range map[string]struct {
		count   int
		subnets []plan.Subnet
		free    map[string]int // 9 if it is not said
		want    []string
	}{
		"nothing":                 {0, []plan.Subnet{{"a", "za", 0}}, nil, nil},
		"nowhere":                 {2, nil, nil, nil},
		"one zone after another":  {4, []plan.Subnet{{"c", "zc", 0}, {"a", "za", 0}, {"b", "zb", 0}}, nil, []string{"a", "b", "c", "a"}},
		"where the fewest are":    {2, []plan.Subnet{{"a", "za", 3}, {"b", "zb", 1}}, nil, []string{"b", "b"}},
		"zones before subnets":    {2, []plan.Subnet{{"a1", "za", 1}, {"a2", "za", 0}, {"b", "zb", 0}}, nil, []string{"b", "a2"}},
		"a full subnet":           {3, []plan.Subnet{{"a", "za", 0}, {"b", "zb", 0}}, map[string]int{"a": 1}, []string{"a", "b", "b"}},
		"fewer than asked for":    {5, []plan.Subnet{{"a", "za", 0}, {"b", "zb", 4}}, map[string]int{"a": 1, "b": 1}, []string{"a", "b"}},
		"more taken than it has":  {1, []plan.Subnet{{"a", "za", 0}}, map[string]int{"a": -2}, nil},
		"the other in a full one": {2, []plan.Subnet{{"a1", "za", 0}, {"a2", "za", 0}, {"b", "zb", 0}}, map[string]int{"a1": 0, "a2": 5, "b": 5}, []string{"a2", "b"}},
	} {
		free := map[string]int{}
		for _, s := range test.subnets {
			free[s.ID] = 9
		}
		maps.Copy(free, test.free)
		if diff := cmp.Diff(test.want, plan.Place(test.count, test.subnets, room(free))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// No subnet gets more than it has room for, nothing is left out while there is room, and no machine goes to a zone that
// had more of the group than another with room.
func TestPlaceSpreads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var subnets []plan.Subnet
		whole, free := 0, map[string]int{}
		for i := range rapid.IntRange(0, 6).Draw(t, "subnets") {
			s := plan.Subnet{
				ID: fmt.Sprint("s", i), Zone: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone"),
				Machines: rapid.IntRange(0, 5).Draw(t, "machines"),
			}
			free[s.ID] = rapid.IntRange(0, 6).Draw(t, "free")
			whole += free[s.ID]
			subnets = append(subnets, s)
		}
		count := rapid.IntRange(0, 30).Draw(t, "count")
		before, given := slices.Clone(subnets), maps.Clone(free)
		chosen := plan.Place(count, subnets, room(free))
		if !slices.Equal(before, subnets) {
			t.Fatal("it changed what it was given")
		}
		if len(chosen) != min(count, whole) {
			t.Fatalf("%d places for %d machines in room for %d", len(chosen), count, whole)
		}
		zones := map[string]int{}
		for _, s := range subnets {
			zones[s.Zone] += s.Machines
		}
		for _, id := range chosen {
			at := slices.IndexFunc(subnets, func(s plan.Subnet) bool { return s.ID == id })
			if free[id] == 0 {
				t.Fatalf("%s is full", id)
			}
			for _, other := range subnets {
				if free[other.ID] > 0 && zones[other.Zone] < zones[subnets[at].Zone] {
					t.Fatalf("%s has more machines than zone %s", id, other.Zone)
				}
			}
			free[id]--
			zones[subnets[at].Zone]++
		}
		slices.Reverse(subnets)
		if again := plan.Place(count, subnets, room(given)); !slices.Equal(again, chosen) {
			t.Fatalf("the order of subnets matters: %v, %v", chosen, again)
		}
	})
}
