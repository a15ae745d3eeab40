// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/plan"
)

func TestWithPool(t *testing.T) {
	ready := func(name string, created int) plan.Machine {
		return plan.Machine{Name: name, Created: at(created), Joined: true, Ready: true}
	}
	warm := func(name string, created int) plan.Machine {
		return plan.Machine{Name: name, Created: at(created), Warm: true, Prepared: true}
	}
	boots := plan.Machine{Name: "boots", Created: at(1), Warm: true}
	away := plan.Machine{Name: "away", Created: at(1), Warm: true, Prepared: true, Shifted: true}
	old := plan.Machine{Name: "old", Created: at(1), Warm: true, Prepared: true, Outdated: true}
	tests := []struct {
		name     string
		desired  int
		pool     plan.Pool
		machines []plan.Machine
		want     []plan.Action
	}{
		{"both from nothing", 2, plan.Pool{Size: 1}, nil, []plan.Action{
			{Create: 2, Reason: "the group has 0 of 2 machines"},
			{Warm: 1, Reason: "the warm pool has 0 machines, and is to have 1"},
		}},
		{"a warm machine does not count in the group", 1, plan.Pool{Size: 1}, []plan.Machine{ready("a", 1), warm("w", 2)}, nil},
		{"the pool first, prepared before booting, oldest first", 4, plan.Pool{}, []plan.Machine{ready("a", 1), boots, warm("young", 9), warm("aged", 2)}, []plan.Action{
			{Take: "aged", Reason: "the group has 1 of 4 machines, and this one is in its warm pool"},
			{Take: "young", Reason: "the group has 1 of 4 machines, and this one is in its warm pool"},
			{Take: "boots", Reason: "the group has 1 of 4 machines, and this one boots in its warm pool"},
		}},
		{"of those that have booted, the one in the zone with the fewest", 3, plan.Pool{}, []plan.Machine{
			{Name: "a", Zone: "z1", Created: at(1), Joined: true, Ready: true},
			{Name: "w", Zone: "z1", Created: at(2), Warm: true, Prepared: true},
			{Name: "v", Zone: "z2", Created: at(3), Warm: true, Prepared: true},
			{Name: "u", Zone: "z3", Created: at(1), Warm: true},
		}, []plan.Action{
			{Take: "v", Reason: "the group has 1 of 3 machines, and this one is in its warm pool"},
			{Take: "w", Reason: "the group has 1 of 3 machines, and this one is in its warm pool"},
			{Delete: "u", Reason: "the warm pool has 1 machines, and is to have 0"},
		}},
		{"new ones when the pool is empty, and it is filled again", 3, plan.Pool{Size: 1}, []plan.Machine{ready("a", 1), warm("w", 2)}, []plan.Action{
			{Take: "w", Reason: "the group has 1 of 3 machines, and this one is in its warm pool"},
			{Create: 1, Reason: "the group has 1 of 3 machines"},
			{Warm: 1, Reason: "the warm pool has 0 machines, and is to have 1"},
		}},
		{"without reuse scale-in deletes", 1, plan.Pool{Size: 1}, []plan.Machine{ready("a", 1), ready("b", 2)}, []plan.Action{
			{Delete: "b", Reason: "the group has 2 machines, and is to have 1, and this one is the newest"},
			{Warm: 1, Reason: "the warm pool has 0 machines, and is to have 1"},
		}},
		{"with reuse it returns", 1, plan.Pool{Size: 1, Reuse: true}, []plan.Machine{ready("a", 1), ready("b", 2)}, []plan.Action{
			{Return: "b", Reason: "the group has 2 machines, and is to have 1, and this one is the newest"},
		}},
		{"but not into a full pool", 1, plan.Pool{Size: 1, Reuse: true}, []plan.Machine{ready("a", 1), ready("b", 2), warm("w", 1)}, []plan.Action{
			{Delete: "b", Reason: "the group has 2 machines, and is to have 1, and this one is the newest"},
		}},
		{"and not if it is not Ready", 1, plan.Pool{Size: 1, Reuse: true}, []plan.Machine{ready("a", 1), {Name: "b", Created: at(1), Joined: true}}, []plan.Action{
			{Delete: "b", Reason: "the group has 2 machines, and is to have 1, and the node of this one is not Ready"},
			{Warm: 1, Reason: "the warm pool has 0 machines, and is to have 1"},
		}},
		{"an outdated one is not taken", 1, plan.Pool{Size: 1}, []plan.Machine{old}, []plan.Action{
			{Delete: "old", Reason: "it waits in the warm pool, and is to be replaced"},
			{Create: 1, Reason: "the group has 0 of 1 machine"},
			{Warm: 1, Reason: "the warm pool has 0 machines, and is to have 1"},
		}},
		{"one in a shifted zone is not taken, and stays", 2, plan.Pool{Size: 1}, []plan.Machine{away, warm("w", 2)}, []plan.Action{
			{Take: "w", Reason: "the group has 0 of 2 machines, and this one is in its warm pool"},
			{Create: 1, Reason: "the group has 0 of 2 machines"},
		}},
		{"too many: one in a shifted zone first", 0, plan.Pool{Size: 1}, []plan.Machine{away, boots}, []plan.Action{
			{Delete: "away", Reason: "the warm pool has 2 machines, and is to have 1"},
		}},
		{"too many: those that boot first", 0, plan.Pool{Size: 1}, []plan.Machine{warm("w", 1), warm("v", 2), boots}, []plan.Action{
			{Delete: "boots", Reason: "the warm pool has 3 machines, and is to have 1"},
			{Delete: "v", Reason: "the warm pool has 3 machines, and is to have 1"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, plan.WithPool(test.desired, test.machines, test.pool, plan.Balance{})); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// From any state a plan reaches both sizes in one go. It has none made for the group while the pool has one to take, takes
// none that is outdated or in a shifted zone, and does one thing with a machine at most.
func TestWithPoolOfAnyState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := machines().Draw(t, "machines")
		for i := range list {
			list[i].Warm = rapid.Bool().Draw(t, "warm")
			list[i].Prepared, list[i].Outdated, list[i].Shifted = rapid.Bool().Draw(t, "prepared"), rapid.Bool().Draw(t, "outdated"), rapid.Bool().Draw(t, "shifted")
		}
		desired := rapid.IntRange(0, 12).Draw(t, "desired")
		pool := plan.Pool{Size: rapid.IntRange(0, 6).Draw(t, "pool"), Reuse: rapid.Bool().Draw(t, "reuse")}
		actions := plan.WithPool(desired, list, pool, plan.Balance{})
		if diff := cmp.Diff(actions, plan.WithPool(desired, rapid.Permutation(list).Draw(t, "permutation"), pool, plan.Balance{})); diff != "" {
			t.Fatalf("the order of machines matters:\n%s", diff)
		}
		before := counted(slices.DeleteFunc(slices.Clone(list), func(m plan.Machine) bool { return m.Warm }))
		for _, action := range actions {
			if action.Delete+action.Return != "" && !named(t, list, action.Delete+action.Return).Warm && before <= desired {
				t.Fatalf("%+v, and the group has %d of %d", action, before, desired)
			}
			if action.Create > 0 && before+action.Create > desired {
				t.Fatalf("%+v exceeds %d", action, desired)
			}
			list = carryOutWarm(t, action, list)
			if action.Create > 0 && slices.ContainsFunc(list, func(m plan.Machine) bool {
				return m.Warm && !m.Deleting && !m.Outdated && !m.Shifted && m.Created != at(20)
			}) {
				t.Fatalf("%+v, and the pool has one to take: %+v", action, list)
			}
		}
		group, warm := 0, 0
		for _, m := range list {
			switch {
			case m.Deleting:
			case m.Warm:
				warm++
			default:
				group++
			}
		}
		if group != desired || warm != pool.Size {
			t.Fatalf("%d of %d machines in the group, %d of %d in the pool", group, desired, warm, pool.Size)
		}
		if again := plan.WithPool(desired, list, pool, plan.Balance{}); len(again) > 0 {
			t.Fatalf("a plan after the plan: %+v", again)
		}
	})
}

func named(t *rapid.T, list []plan.Machine, name string) *plan.Machine {
	at := slices.IndexFunc(list, func(m plan.Machine) bool { return m.Name == name && !m.Deleting })
	if at < 0 {
		t.Fatalf("there is no machine %s that stays", name)
	}
	return &list[at]
}

func carryOutWarm(t *rapid.T, action plan.Action, list []plan.Machine) []plan.Machine {
	things := action.Create + action.Warm
	for _, name := range []string{action.Take, action.Return, action.Delete} {
		if name != "" {
			things++
		}
	}
	if things == 0 || action.Reason == "" || things > 1 && action.Create != things && action.Warm != things {
		t.Fatalf("not one thing to do, with a reason: %+v", action)
	}
	switch {
	case action.Take != "":
		m := named(t, list, action.Take)
		if !m.Warm || m.Outdated {
			t.Fatalf("%+v takes %+v", action, m)
		}
		m.Warm = false
	case action.Return != "":
		m := named(t, list, action.Return)
		if m.Warm || m.Outdated || !m.Ready {
			t.Fatalf("%+v returns %+v", action, m)
		}
		m.Warm = true
	case action.Delete != "":
		named(t, list, action.Delete).Deleting = true
	}
	for i := range action.Create {
		list = append(list, plan.Machine{Name: fmt.Sprintf("new-%d", i), Created: at(20)})
	}
	for i := range action.Warm {
		list = append(list, plan.Machine{Name: fmt.Sprintf("warm-%d", i), Created: at(20), Warm: true})
	}
	return list
}
