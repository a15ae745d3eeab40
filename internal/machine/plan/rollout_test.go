// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/plan"
)

func TestRollout(t *testing.T) {
	old := func(name string, created int) plan.Machine {
		return plan.Machine{Name: name, Created: at(created), Joined: true, Ready: true, Outdated: true}
	}
	fresh := plan.Machine{Name: "fresh", Created: at(9), Joined: true, Ready: true}
	joining := plan.Machine{Name: "fresh", Created: at(9)}
	leaving := plan.Machine{Name: "leaving", Deleting: true, Outdated: true}
	drained, late := old("a", 1), old("a", 1)
	drained.Drained, late.TimedOut = true, true
	down := plan.Machine{Name: "down", Created: at(5), Joined: true, Outdated: true}
	for name, c := range map[string]struct {
		desired  int
		machines []plan.Machine
		draining string
		force    bool
		want     plan.Step
	}{
		"nothing is outdated":          {1, []plan.Machine{fresh}, "", false, plan.Step{Size: 1}},
		"nothing is wanted":            {0, []plan.Machine{old("a", 1)}, "", false, plan.Step{}},
		"first one more":               {2, []plan.Machine{old("a", 1), old("b", 2)}, "", false, plan.Step{Size: 3, Outdated: 2}},
		"which joins":                  {1, []plan.Machine{old("a", 1), joining}, "", false, plan.Step{Size: 2, Outdated: 1}},
		"then the oldest":              {2, []plan.Machine{old("b", 2), fresh, old("a", 1)}, "", false, plan.Step{Size: 3, Outdated: 2, Drain: "a"}},
		"or one that serves nobody":    {2, []plan.Machine{old("b", 2), fresh, down}, "", false, plan.Step{Size: 3, Outdated: 2, Drain: "down"}},
		"it is waited for":             {1, []plan.Machine{old("a", 1), fresh}, "a", false, plan.Step{Size: 2, Outdated: 1, Drain: "a"}},
		"and goes":                     {1, []plan.Machine{drained, fresh}, "a", false, plan.Step{Size: 2, Outdated: 1, Drain: "a", Delete: true}},
		"in time or not at all":        {1, []plan.Machine{late, fresh}, "a", false, plan.Step{Size: 2, Outdated: 1, Drain: "a", Stuck: true}},
		"unless it is forced":          {1, []plan.Machine{late, fresh}, "a", true, plan.Step{Size: 2, Outdated: 1, Drain: "a", Delete: true}},
		"the next when it is gone":     {2, []plan.Machine{old("b", 2), fresh, leaving}, "leaving", false, plan.Step{Size: 2, Outdated: 1}},
		"one that was chosen and left": {2, []plan.Machine{old("b", 2), fresh}, "a", false, plan.Step{Size: 3, Outdated: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, plan.Rollout(c.desired, c.machines, c.draining, c.force)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A rollout replaces every machine, never has more than one above the size, and never fewer Ready ones than the size.
func TestRolloutEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		desired := rapid.IntRange(1, 5).Draw(t, "desired")
		var machines []plan.Machine
		for i := range desired {
			machines = append(machines, plan.Machine{Name: fmt.Sprintf("old-%d", i), Created: at(i), Joined: true, Ready: true, Outdated: true})
		}
		draining := ""
		for turn := range 100 {
			step := plan.Rollout(desired, machines, draining, false)
			if draining = step.Drain; step.Outdated == 0 && len(machines) == desired {
				return
			}
			var next []plan.Machine
			ready := 0
			for _, m := range machines {
				switch {
				case m.Deleting && rapid.Bool().Draw(t, "gone"):
					continue
				case m.Name == draining && step.Delete:
					m.Deleting = true
				case m.Name == draining && rapid.Bool().Draw(t, "drained"):
					m.Drained = true
				case !m.Ready && rapid.Bool().Draw(t, "joined"):
					m.Joined, m.Ready = true, true
				}
				next = append(next, m)
				if m.Ready && !m.Deleting && !m.Drained {
					ready++
				}
			}
			machines = next
			if ready < desired {
				t.Fatalf("%d of %d machines serve", ready, desired)
			}
			if step.Delete {
				continue // nothing else is done in that turn
			}
			for _, action := range plan.Group(step.Size, machines) {
				for i := range action.Create {
					machines = append(machines, plan.Machine{Name: fmt.Sprintf("new-%d-%d", turn, i), Created: at(10 + turn)})
				}
				if action.Delete != "" {
					t.Fatalf("deletes %s: %s", action.Delete, action.Reason)
				}
			}
			if len(machines) > desired+2 {
				t.Fatalf("%d machines", len(machines))
			}
		}
		t.Fatal("it does not end")
	})
}
