// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/plan"
)

func TestRollout(t *testing.T) {
	old := func(name string, created int) plan.Machine {
		return plan.Machine{Name: name, Created: at(created), Joined: true, Ready: true, Outdated: true}
	}
	chosen := func(change func(*plan.Machine)) plan.Machine {
		m := old("a", 1)
		m.Draining = true
		change(&m)
		return m
	}
	fresh := func(name string) plan.Machine {
		return plan.Machine{Name: name, Created: at(9), Joined: true, Ready: true}
	}
	a, b, c, d := old("a", 1), old("b", 2), old("c", 3), old("d", 4)
	joining := plan.Machine{Name: "joining", Created: at(9)}
	leaving := plan.Machine{Name: "leaving", Deleting: true, Outdated: true}
	down := plan.Machine{Name: "down", Created: at(5), Joined: true, Outdated: true}
	draining := chosen(func(*plan.Machine) {})
	drained, late := chosen(func(m *plan.Machine) { m.Drained = true }), chosen(func(m *plan.Machine) { m.TimedOut = true })
	forgetful := plan.Machine{Name: "a", Created: at(1), Joined: true, Outdated: true, Drains: true, TimedOut: true}
	stopped := plan.Machine{Name: "stopped", Created: at(9), Joined: true, Stopped: true}
	one := plan.Policy{Zones: 1}
	two := plan.Policy{Zones: 1, MaxUnavailable: 2}
	minimal := plan.Policy{Zones: 3, Minimal: true}
	force := plan.Policy{Zones: 1, Force: true}
	for name, c := range map[string]struct {
		desired  int
		machines []plan.Machine
		phase    plan.Phase
		policy   plan.Policy
		want     string
	}{
		"nothing is outdated":              {1, []plan.Machine{fresh("f")}, "", one, "ScaleDown to 1, 0 outdated"},
		"nothing is wanted":                {0, []plan.Machine{a}, "", one, "ScaleDown to 0, 1 outdated"},
		"two more for each zone":           {4, []plan.Machine{a, b, c, d}, "", plan.Policy{Zones: 2}, "ScaleUp to 8, 4 outdated"},
		"or what may be unavailable":       {4, []plan.Machine{a, b, c, d}, "", plan.Policy{Zones: 1, MaxUnavailable: 3}, "ScaleUp to 7, 4 outdated"},
		"or percent of it":                 {4, []plan.Machine{a, b, c, d}, "", plan.Policy{Percentage: 75}, "ScaleUp to 7, 4 outdated"},
		"but one for each outdated one":    {2, []plan.Machine{a, b}, "", plan.Policy{Zones: 3}, "ScaleUp to 4, 2 outdated"},
		"they join":                        {1, []plan.Machine{a, joining}, "", one, "ScaleUp to 2, 1 outdated"},
		"then the oldest":                  {2, []plan.Machine{b, fresh("f"), a, fresh("g")}, "", one, "Upgrade to 4, 2 outdated, drain a: without it 3 machines are Ready, and 2 have to be"},
		"or the oldest two":                {2, []plan.Machine{b, fresh("f"), a, fresh("g")}, "", two, "Upgrade to 4, 2 outdated, drain a: without it 3 machines are Ready, and 2 have to be, drain b: without it 2 machines are Ready, and 2 have to be"},
		"as many as can be spared":         {3, []plan.Machine{b, fresh("f"), a, joining}, plan.Upgrade, two, "Upgrade to 5, 2 outdated"},
		"one that serves nobody first":     {2, []plan.Machine{b, down, fresh("f"), fresh("g")}, "", one, "Upgrade to 4, 2 outdated, drain down: it is not Ready, and the first of 2 to be replaced"},
		"even while too few serve":         {3, []plan.Machine{b, down, fresh("f")}, plan.Upgrade, one, "Upgrade to 5, 2 outdated, drain down: it is not Ready, and the first of 2 to be replaced"},
		"it is waited for":                 {1, []plan.Machine{draining, fresh("f")}, plan.Upgrade, one, "Upgrade to 2, 1 outdated, drain a: its pods are not gone yet"},
		"and goes":                         {1, []plan.Machine{drained, fresh("f")}, plan.Upgrade, one, "Upgrade to 2, 1 outdated, delete a: its pods are gone"},
		"in time or not at all":            {1, []plan.Machine{late, fresh("f")}, plan.Upgrade, one, "Upgrade to 2, 1 outdated, a is stuck"},
		"unless it is forced":              {1, []plan.Machine{late, fresh("f")}, plan.Upgrade, force, "Upgrade to 2, 1 outdated, delete a: its pods did not go in time, and the rollout is forced"},
		"not before it forgot the last":    {2, []plan.Machine{forgetful, b, fresh("f"), fresh("g")}, plan.Upgrade, force, "Upgrade to 4, 2 outdated"},
		"a stopped one is not waited for":  {3, []plan.Machine{a, b, stopped}, "", one, "ScaleUp to 5, 2 outdated"},
		"nor missed":                       {3, []plan.Machine{a, fresh("f"), stopped}, plan.Upgrade, one, "Upgrade to 4, 1 outdated"},
		"if others are Ready":              {3, []plan.Machine{a, b, fresh("f"), fresh("g"), stopped}, "", one, "Upgrade to 5, 2 outdated, drain a: without it 3 machines are Ready, and 2 have to be"},
		"the next when it is gone":         {2, []plan.Machine{b, fresh("f"), fresh("g"), leaving}, plan.Upgrade, one, "Upgrade to 3, 1 outdated"},
		"one is made when another is gone": {4, []plan.Machine{b, c, d, fresh("f"), fresh("g"), leaving}, plan.Upgrade, one, "Upgrade to 5, 3 outdated"},
		"then in its place":                {4, []plan.Machine{b, c, d, fresh("f"), fresh("g")}, plan.Upgrade, one, "Upgrade to 6, 3 outdated, drain b: without it 4 machines are Ready, and 4 have to be"},
		"the last ones make it smaller":    {4, []plan.Machine{d, fresh("f"), fresh("g"), fresh("h"), fresh("i")}, plan.Upgrade, one, "Upgrade to 5, 1 outdated, drain d: without it 4 machines are Ready, and 4 have to be"},
		"minimal: first one less":          {3, []plan.Machine{a, b, c}, "", minimal, "Upgrade to 3, 3 outdated, drain a: without it 2 machines are Ready, and 2 have to be"},
		"the last one goes":                {1, []plan.Machine{fresh("f"), leaving}, plan.Upgrade, one, "Upgrade to 1, 0 outdated"},
		"minimal: and then one is made":    {1, []plan.Machine{leaving}, plan.Upgrade, minimal, "Upgrade to 0, 0 outdated"},
		"minimal: it goes":                 {3, []plan.Machine{b, c, leaving}, plan.Upgrade, minimal, "Upgrade to 2, 2 outdated"},
		"minimal: one takes its place":     {3, []plan.Machine{b, c}, plan.Upgrade, minimal, "Upgrade to 3, 2 outdated"},
		"minimal: it is waited for":        {3, []plan.Machine{b, c, joining}, plan.Upgrade, minimal, "Upgrade to 3, 2 outdated"},
		"minimal: the only one":            {1, []plan.Machine{a}, "", minimal, "Upgrade to 1, 1 outdated, drain a: without it 0 machines are Ready, and 0 have to be"},
		"a smaller group":                  {1, []plan.Machine{a, b, c, d, fresh("f"), fresh("g")}, plan.Upgrade, one, "Upgrade to 3, 4 outdated, drain a: without it 5 machines are Ready, and 1 have to be"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, say(plan.Rollout(c.desired, c.machines, c.phase, c.policy))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// say is a step in one line.
func say(step plan.Step) string {
	parts := []string{fmt.Sprintf("%s to %d", step.Phase, step.Size), fmt.Sprintf("%d outdated", step.Outdated)}
	for _, action := range step.Actions {
		if action.Drain != "" {
			parts = append(parts, "drain "+action.Drain+": "+action.Reason)
		} else {
			parts = append(parts, "delete "+action.Delete+": "+action.Reason)
		}
	}
	if step.Stuck != "" {
		parts = append(parts, step.Stuck+" is stuck")
	}
	return strings.Join(parts, ", ")
}

// rollout is a group whose machines are being replaced, as its controller and the world carry it out.
type rollout struct {
	desired  int
	policy   plan.Policy
	phase    plan.Phase
	machines []plan.Machine
	made     int
}

func policies(t *rapid.T) plan.Policy {
	return plan.Policy{
		MaxUnavailable: rapid.IntRange(0, 4).Draw(t, "unavailable"), Percentage: rapid.SampledFrom([]int{0, 25, 100}).Draw(t, "percentage"),
		Zones: rapid.IntRange(0, 3).Draw(t, "zones"), Minimal: rapid.Bool().Draw(t, "minimal"), Force: true,
	}
}

// unavailable is how many machines may be unavailable at once.
func (r *rollout) unavailable() int {
	if r.policy.MaxUnavailable == 0 {
		return max(r.desired*r.policy.Percentage/100, 1)
	}
	return r.policy.MaxUnavailable
}

// turn carries out the next step. It returns the step, and whether nothing is left to do.
func (r *rollout) turn(t *rapid.T) (step plan.Step, done bool) {
	if diff := cmp.Diff(say(plan.Rollout(r.desired, r.machines, r.phase, r.policy)), say(plan.Rollout(r.desired, rapid.Permutation(r.machines).Draw(t, "order"), r.phase, r.policy))); diff != "" {
		t.Fatalf("the order of machines matters:\n%s", diff)
	}
	step = plan.Rollout(r.desired, r.machines, r.phase, r.policy)
	if r.phase == plan.Upgrade && step.Phase == plan.ScaleUp {
		t.Fatal("it goes back to an earlier phase")
	}
	r.phase = step.Phase
	deletes, was := false, map[string]bool{}
	_, busy := r.serve()
	for i := range r.machines {
		was[r.machines[i].Name], r.machines[i].Draining = r.machines[i].Draining, false
	}
	for _, action := range step.Actions {
		if action.Reason == "" || (action.Drain == "") == (action.Delete == "") || action.Create != 0 {
			t.Fatalf("not one thing to do, with a reason: %+v", action)
		}
		m := r.find(t, action.Drain+action.Delete)
		if m.Draining = true; !was[m.Name] {
			busy++
			if busy > r.unavailable() {
				t.Fatalf("%+v makes %d machines unavailable, and %d may be", action, busy, r.unavailable())
			}
		}
		if action.Delete != "" {
			m.Deleting, deletes = true, true
		}
	}
	if deletes {
		return step, false // nothing else is done in that turn
	}
	actions := plan.Group(step.Size, r.machines)
	for _, action := range actions {
		for range action.Create {
			r.made++
			r.machines = append(r.machines, plan.Machine{Name: fmt.Sprintf("new-%d", r.made), Created: at(1000 + r.made)})
		}
		if action.Delete != "" {
			r.find(t, action.Delete).Deleting = true
		}
	}
	return step, step.Outdated == 0 && len(actions) == 0 && len(r.machines) == counted(r.machines)
}

func (r *rollout) find(t *rapid.T, name string) *plan.Machine {
	for i := range r.machines {
		if m := &r.machines[i]; m.Name == name && !m.Deleting {
			return m
		}
	}
	t.Fatalf("there is no machine %s that stays", name)
	return nil
}

// lives has the world go on: machines become Ready, pods go or do not, machines go.
func (r *rollout) lives(t *rapid.T) {
	var next []plan.Machine
	for _, m := range r.machines {
		happens := rapid.Bool().Draw(t, m.Name)
		switch {
		case m.Deleting && happens:
			continue
		case m.Draining && happens:
			m.Drained = rapid.Bool().Draw(t, "drained")
			m.TimedOut = !m.Drained
		case !m.Ready && !m.Outdated && !m.Stopped && happens:
			m.Joined, m.Ready = true, true
		}
		next = append(next, m)
	}
	r.machines = next
}

func (r *rollout) serve() (serving, busy int) {
	for _, m := range r.machines {
		switch {
		case m.Deleting || m.Draining:
			busy++
		case m.Ready:
			serving++
		}
	}
	return serving, busy
}

// From a group that is whole, a rollout never has more machines unavailable than may be, never fewer Ready than are to
// be, never more machines than desired and the additional ones, and makes as many as it replaces.
func TestRolloutOfAWholeGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &rollout{desired: rapid.IntRange(1, 8).Draw(t, "desired"), policy: policies(t)}
		for i := range r.desired {
			r.machines = append(r.machines, plan.Machine{Name: fmt.Sprintf("old-%d", i), Created: at(i), Joined: true, Ready: true, Outdated: true})
		}
		unavailable := r.unavailable()
		most, least := r.desired+min(max(2*r.policy.Zones, unavailable), r.desired), r.desired
		if r.policy.Minimal {
			most, least = r.desired, r.desired-unavailable
		}
		for range 500 {
			if _, done := r.turn(t); done {
				if r.made != r.desired {
					t.Fatalf("%d machines were made for %d", r.made, r.desired)
				}
				return
			}
			switch serving, busy := r.serve(); {
			case busy > unavailable:
				t.Fatalf("%d machines are unavailable, and %d may be: %+v", busy, unavailable, r.machines)
			case serving < least:
				t.Fatalf("%d machines serve, and %d are to: %+v", serving, least, r.machines)
			case len(r.machines) > most:
				t.Fatalf("%d machines, and %d may be: %+v", len(r.machines), most, r.machines)
			}
			r.lives(t)
		}
		t.Fatal("it does not end")
	})
}

// From any state, also of another size and in any phase, a rollout ends with as many machines as are desired, none of
// them outdated. It adds no unavailable machine to more than may be, and drains none that serves where too few would.
func TestRolloutOfAnyGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &rollout{
			desired: rapid.IntRange(0, 6).Draw(t, "desired"), policy: policies(t),
			phase: rapid.SampledFrom([]plan.Phase{"", plan.ScaleUp, plan.Upgrade}).Draw(t, "phase"), machines: machines().Draw(t, "machines"),
		}
		for i := range r.machines {
			m := &r.machines[i]
			m.Outdated = rapid.Bool().Draw(t, "outdated")
			m.Draining = m.Outdated && rapid.Bool().Draw(t, "draining")
			m.Drained, m.Ready = m.Draining && rapid.Bool().Draw(t, "drained"), m.Ready && m.Joined
		}
		for range 1000 {
			before, _ := r.serve()
			step, done := r.turn(t)
			if done {
				if got := counted(r.machines); got != r.desired || step.Outdated != 0 {
					t.Fatalf("%d machines of %d, %d outdated", got, r.desired, step.Outdated)
				}
				return
			}
			if serving, _ := r.serve(); !r.policy.Minimal && serving < before && serving < r.desired {
				t.Fatalf("%d of %d machines serve, and %d did before: %s", serving, r.desired, before, say(step))
			}
			r.lives(t)
		}
		t.Fatal("it does not end")
	})
}
