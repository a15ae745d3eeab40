// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/plan"
)

func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

func TestGroup(t *testing.T) {
	ready := func(name string, created int) plan.Machine {
		return plan.Machine{Name: name, Created: at(created), Joined: true, Ready: true}
	}
	in := func(zone string, m plan.Machine) plan.Machine {
		m.Zone = zone
		return m
	}
	down := plan.Machine{Name: "down", Created: at(1), Joined: true}
	fresh := plan.Machine{Name: "fresh", Created: at(2)}
	leaving := plan.Machine{Name: "leaving", Created: at(3), Joined: true, Ready: true, Deleting: true}
	tests := []struct {
		name     string
		desired  int
		machines []plan.Machine
		want     []plan.Action
	}{
		{"nothing wanted, nothing there", 0, nil, nil},
		{"from nothing", 3, nil, []plan.Action{{Create: 3, Reason: "the group has 0 of 3 machines"}}},
		{"enough", 2, []plan.Machine{ready("a", 1), fresh}, nil},
		{"one short", 2, []plan.Machine{ready("a", 1)}, []plan.Action{{Create: 1, Reason: "the group has 1 of 2 machines"}}},
		{"a machine that leaves does not count", 1, []plan.Machine{leaving}, []plan.Action{{Create: 1, Reason: "the group has 0 of 1 machine"}}},
		{"and is not deleted again", 0, []plan.Machine{leaving}, nil},
		{"not joined first, then not ready, then newest", 1, []plan.Machine{ready("old", 1), ready("new", 9), down, fresh}, []plan.Action{
			{Delete: "fresh", Reason: "the group has 4 machines, and is to have 1, and this one has not joined yet"},
			{Delete: "down", Reason: "the group has 4 machines, and is to have 1, and the node of this one is not Ready"},
			{Delete: "new", Reason: "the group has 4 machines, and is to have 1, and this one is the newest"},
		}},
		{"the zone with the most first, in turn", 1, []plan.Machine{in("a", ready("a1", 1)), in("a", ready("a2", 2)), in("b", ready("b9", 9)), in("a", ready("a3", 3))}, []plan.Action{
			{Delete: "a3", Reason: "the group has 4 machines, and is to have 1, and this one is the newest in a, which has the most"},
			{Delete: "a2", Reason: "the group has 4 machines, and is to have 1, and this one is the newest in a, which has the most"},
			{Delete: "b9", Reason: "the group has 4 machines, and is to have 1, and this one is the newest"},
		}},
		{"names settle ties", 1, []plan.Machine{ready("b", 1), ready("a", 1)}, []plan.Action{
			{Delete: "a", Reason: "the group has 2 machines, and is to have 1, and this one is the newest"},
		}},
		{"a negative size is none", -1, []plan.Machine{fresh}, []plan.Action{
			{Delete: "fresh", Reason: "the group has 1 machine, and is to have 0, and this one has not joined yet"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, plan.Group(test.desired, test.machines)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func machines() *rapid.Generator[[]plan.Machine] {
	one := rapid.Custom(func(t *rapid.T) plan.Machine {
		return plan.Machine{
			Name:     rapid.StringMatching(`i-[0-9a-f]{4}`).Draw(t, "name"),
			Zone:     rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "zone"),
			Created:  at(rapid.IntRange(0, 5).Draw(t, "created")),
			Joined:   rapid.Bool().Draw(t, "joined"),
			Ready:    rapid.Bool().Draw(t, "ready"),
			Deleting: rapid.Bool().Draw(t, "deleting"),
		}
	})
	return rapid.SliceOfNDistinct(one, 0, 12, func(m plan.Machine) string { return m.Name })
}

func counted(list []plan.Machine) int {
	n := 0
	for _, machine := range list {
		if !machine.Deleting {
			n++
		}
	}
	return n
}

// Carrying out a plan reaches the desired size in one go, leaves nothing to plan, never creates and deletes at once,
// never has more than desired because of a creation, and never deletes when there are too few.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := machines().Draw(t, "machines")
		desired := rapid.IntRange(0, 12).Draw(t, "desired")
		before := counted(list)
		actions := plan.Group(desired, list)
		if diff := cmp.Diff(actions, plan.Group(desired, rapid.Permutation(list).Draw(t, "permutation"))); diff != "" {
			t.Fatalf("the order of machines matters:\n%s", diff)
		}
		for _, action := range actions {
			if (action.Create > 0) == (action.Delete != "") || action.Reason == "" {
				t.Fatalf("not one thing to do, with a reason: %+v", action)
			}
			if action.Create > 0 && before+action.Create > desired {
				t.Fatalf("%+v exceeds %d", action, desired)
			}
			if action.Delete != "" && before <= desired {
				t.Fatalf("%+v with %d of %d", action, before, desired)
			}
			list = carryOut(t, action, list)
		}
		if got := counted(list); got != desired {
			t.Fatalf("%d machines after the plan, want %d", got, desired)
		}
		if again := plan.Group(desired, list); again != nil {
			t.Fatalf("a plan after the plan: %+v", again)
		}
	})
}

// A group of Ready machines that becomes smaller is as even over its zones afterwards as it can be: while a zone has two more
// than another, machines go there alone.
func TestGroupShrinksEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zones, list := map[string]int{}, []plan.Machine(nil)
		for i, zone := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 12).Draw(t, "zones") {
			zones[zone]++
			list = append(list, plan.Machine{Name: fmt.Sprint(i), Zone: zone, Created: at(rapid.IntRange(0, 5).Draw(t, "created")), Joined: true, Ready: true})
		}
		for _, action := range plan.Group(rapid.IntRange(0, len(list)).Draw(t, "desired"), list) {
			at := slices.IndexFunc(list, func(m plan.Machine) bool { return m.Name == action.Delete })
			for zone, n := range zones {
				if n > zones[list[at].Zone] {
					t.Fatalf("one of %s goes, with %v, and %s has more", list[at].Zone, zones, zone)
				}
			}
			zones[list[at].Zone]--
		}
	})
}

// A machine that stays is never more dispensable than one that goes.
func TestVictims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := machines().Draw(t, "machines")
		gone := map[string]bool{}
		for _, action := range plan.Group(rapid.IntRange(0, 12).Draw(t, "desired"), list) {
			gone[action.Delete] = true
		}
		for _, stays := range list {
			for _, goes := range list {
				if stays.Deleting || gone[stays.Name] || !gone[goes.Name] {
					continue
				}
				if goes.Joined && (!stays.Joined || (goes.Ready && !stays.Ready)) {
					t.Fatalf("%+v goes and %+v stays", goes, stays)
				}
			}
		}
	})
}

func carryOut(t *rapid.T, action plan.Action, list []plan.Machine) []plan.Machine {
	for i := range action.Create {
		list = append(list, plan.Machine{Name: fmt.Sprintf("new-%d", i), Created: at(10)})
	}
	if action.Delete == "" {
		return list
	}
	for i := range list {
		if list[i].Name == action.Delete && !list[i].Deleting {
			list[i].Deleting = true
			return list
		}
	}
	t.Fatalf("%+v deletes a machine that is not there, or twice", action)
	return nil
}

// Protected machines count, and are not deleted.
func TestProtected(t *testing.T) {
	machines := []plan.Machine{{Name: "a", Created: at(1), Protected: true}, {Name: "b", Created: at(2)}, {Name: "c", Created: at(3), Protected: true}}
	if got := plan.Group(1, machines); len(got) != 1 || got[0].Delete != "b" {
		t.Errorf("got %+v", got)
	}
	if got := plan.Group(4, machines); len(got) != 1 || got[0].Create != 1 {
		t.Errorf("got %+v", got)
	}
	if got := plan.Group(0, machines[2:]); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}
