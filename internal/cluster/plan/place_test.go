// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/cluster/plan"
)

func TestPlace(t *testing.T) {
	for name, test := range map[string]struct {
		count   int
		subnets []plan.Subnet
		want    []string
	}{
		"nothing":                 {0, []plan.Subnet{{"a", "za", 0, 9}}, nil},
		"nowhere":                 {2, nil, nil},
		"one zone after another":  {4, []plan.Subnet{{"c", "zc", 0, 9}, {"a", "za", 0, 9}, {"b", "zb", 0, 9}}, []string{"a", "b", "c", "a"}},
		"where the fewest are":    {2, []plan.Subnet{{"a", "za", 3, 9}, {"b", "zb", 1, 9}}, []string{"b", "b"}},
		"zones before subnets":    {2, []plan.Subnet{{"a1", "za", 1, 9}, {"a2", "za", 0, 9}, {"b", "zb", 0, 9}}, []string{"b", "a2"}},
		"a full subnet":           {3, []plan.Subnet{{"a", "za", 0, 1}, {"b", "zb", 0, 9}}, []string{"a", "b", "b"}},
		"fewer than asked for":    {5, []plan.Subnet{{"a", "za", 0, 1}, {"b", "zb", 4, 1}}, []string{"a", "b"}},
		"more taken than it has":  {1, []plan.Subnet{{"a", "za", 0, -2}}, nil},
		"the other in a full one": {2, []plan.Subnet{{"a1", "za", 0, 0}, {"a2", "za", 0, 5}, {"b", "zb", 0, 5}}, []string{"a2", "b"}},
	} {
		if diff := cmp.Diff(test.want, plan.Place(test.count, test.subnets)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// No subnet gets more than it has room for, nothing is left out while there is room, and no machine goes to a zone that had more of the group
// than another with room.
func TestPlaceSpreads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var subnets []plan.Subnet
		room := 0
		for i := range rapid.IntRange(0, 6).Draw(t, "subnets") {
			s := plan.Subnet{
				ID: fmt.Sprint("s", i), Zone: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone"),
				Machines: rapid.IntRange(0, 5).Draw(t, "machines"), Free: rapid.IntRange(0, 6).Draw(t, "free"),
			}
			room += s.Free
			subnets = append(subnets, s)
		}
		count := rapid.IntRange(0, 30).Draw(t, "count")
		before := slices.Clone(subnets)
		chosen := plan.Place(count, subnets)
		if !slices.Equal(before, subnets) {
			t.Fatal("it changed what it was given")
		}
		if len(chosen) != min(count, room) {
			t.Fatalf("%d places for %d machines in room for %d", len(chosen), count, room)
		}
		zones := map[string]int{}
		free := map[string]int{}
		for _, s := range subnets {
			zones[s.Zone] += s.Machines
			free[s.ID] = s.Free
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
		if again := plan.Place(count, subnets); !slices.Equal(again, chosen) {
			t.Fatalf("the order of subnets matters: %v, %v", chosen, again)
		}
	})
}
