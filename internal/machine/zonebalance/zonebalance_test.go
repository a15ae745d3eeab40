// SPDX-License-Identifier: Apache-2.0

package zonebalance_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/zonebalance"
)

func zone(name string, machines int) zonebalance.Zone {
	return zonebalance.Zone{Name: name, Machines: machines, Movable: machines, Open: true}
}

func TestMoves(t *testing.T) {
	full := func(z zonebalance.Zone) zonebalance.Zone { z.Open = false; return z }
	kept := func(z zonebalance.Zone, movable int) zonebalance.Zone { z.Movable = movable; return z }
	gone := func(z zonebalance.Zone) zonebalance.Zone { z.Left = true; return z }
	for name, test := range map[string]struct {
		zones []zonebalance.Zone
		most  int
		want  string
	}{
		"no zone":                        {nil, 9, "[]"},
		"one zone":                       {[]zonebalance.Zone{zone("a", 5)}, 9, "[]"},
		"even":                           {[]zonebalance.Zone{zone("a", 2), zone("b", 2)}, 9, "[]"},
		"one more is even":               {[]zonebalance.Zone{zone("a", 2), zone("b", 1)}, 9, "[]"},
		"two more are not":               {[]zonebalance.Zone{zone("a", 2), zone("b", 0)}, 9, "[{a b}]"},
		"into the emptiest first":        {[]zonebalance.Zone{zone("a", 6), zone("b", 1), zone("c", 0)}, 9, "[{a c} {a b} {a c}]"},
		"no more than may be":            {[]zonebalance.Zone{zone("a", 6), zone("b", 1), zone("c", 0)}, 1, "[{a c}]"},
		"none may be":                    {[]zonebalance.Zone{zone("a", 6), zone("b", 1)}, 0, "[]"},
		"the emptiest is full":           {[]zonebalance.Zone{zone("a", 4), full(zone("b", 0)), zone("c", 1)}, 9, "[{a c}]"},
		"all others are full":            {[]zonebalance.Zone{zone("a", 4), full(zone("b", 0))}, 9, "[]"},
		"the fullest may not move":       {[]zonebalance.Zone{kept(zone("a", 5), 0), zone("b", 4), zone("c", 0)}, 9, "[{b c} {b c}]"},
		"some of the fullest may not":    {[]zonebalance.Zone{kept(zone("a", 5), 1), zone("b", 1)}, 9, "[{a b}]"},
		"a zone that the group has left": {[]zonebalance.Zone{gone(zone("a", 2)), zone("b", 2), zone("c", 3)}, 9, "[{a b} {a b}]"},
		"it gets none":                   {[]zonebalance.Zone{gone(zone("a", 0)), zone("b", 2)}, 9, "[]"},
	} {
		if got := fmt.Sprint(zonebalance.Moves(test.zones, test.most)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Moves make zones even in as many steps as it takes, none more; leave what may not end; and begin none that is not needed.
func TestMovesOfAnyZones(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var zones []zonebalance.Zone
		for i := range rapid.IntRange(0, 6).Draw(t, "zones") {
			z := zone(fmt.Sprintf("z%d", i), rapid.IntRange(0, 40).Draw(t, "machines"))
			z.Movable = rapid.IntRange(0, z.Machines).Draw(t, "movable")
			z.Open, z.Left = rapid.Bool().Draw(t, "open"), rapid.IntRange(0, 4).Draw(t, "left") == 0
			zones = append(zones, z)
		}
		moves := zonebalance.Moves(zones, 10000)
		if again := zonebalance.Moves(rapid.Permutation(zones).Draw(t, "order"), 10000); !slices.Equal(moves, again) {
			t.Fatalf("the order of zones matters: %v, %v", moves, again)
		}
		before := zones
		zones = slices.Clone(zones)
		at := func(name string) *zonebalance.Zone {
			return &zones[slices.IndexFunc(zones, func(z zonebalance.Zone) bool { return z.Name == name })]
		}
		for _, m := range moves {
			from, to := at(m.From), at(m.To)
			if from.Movable == 0 || !to.Open || to.Left || !from.Left && from.Machines-to.Machines < 2 {
				t.Fatalf("move %v of %+v", m, zones)
			}
			from.Machines, from.Movable, to.Machines = from.Machines-1, from.Movable-1, to.Machines+1
		}
		for _, from := range zones {
			for _, to := range zones {
				if from.Movable > 0 && to.Open && !to.Left && (from.Left || from.Machines-to.Machines > 1) && from.Name != to.Name {
					t.Fatalf("%s has %d, and %s %d, after %v of %+v", from.Name, from.Machines, to.Name, to.Machines, moves, before)
				}
			}
		}
	})
}

func TestMargin(t *testing.T) {
	for most, want := range map[int]int{0: 1, 1: 1, 10: 1, 19: 1, 20: 2, 5000: 500} {
		if got := zonebalance.Margin(most); got != want {
			t.Errorf("of %d: %d, want %d", most, got, want)
		}
	}
}

func TestCauses(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	zones := []zonebalance.Zone{zone("b", 0), zone("a", 2)}
	for got, want := range map[string]string{
		zonebalance.LaunchCause(now, zones):                                  "At 2026-11-30T12:00:00Z availability zones a b had 2 0 instances respectively.  An instance was launched to aid in balancing the group's zones.",
		zonebalance.EndCause(now, []string{"b", "c", "b"}, "At X it ended."): "At 2026-11-30T12:00:00Z instances were launched to balance instances in zones b c with other zones resulting in more than desired number of instances in the group.  At X it ended.",
		zonebalance.Counts(zones):                                            "a 2, b 0",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
