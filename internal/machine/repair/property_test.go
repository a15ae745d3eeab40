// SPDX-License-Identifier: Apache-2.0

package repair_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/machine/repair"
)

// group is a node group as its controller and the world carry it out: rollouts, repairs and its size at the same time.
type group struct {
	desired  int
	rollout  plan.Policy
	updates  int // that have begun
	phase    plan.Phase
	policy   repair.Policy
	machines []*member
	made     int
	now      time.Time
}

// member is a machine: which update it was made for, and what is known of it.
type member struct {
	name      string
	update    int
	launched  time.Time
	joined    bool
	sick      time.Time // zero if it is well
	kind      string
	down      bool // it is not Ready while it is sick
	deleting  bool
	draining  bool
	drained   bool
	rebooting bool
}

func (m *member) ready() bool { return m.joined && (m.sick.IsZero() || !m.down) }

func (g *group) updating() bool { return g.phase != plan.ScaleDown }

func (g *group) plans() []plan.Machine {
	var list []plan.Machine
	for _, m := range g.machines {
		list = append(list, plan.Machine{
			Name: m.name, Created: m.launched, Joined: m.joined, Ready: m.ready(), Deleting: m.deleting,
			Outdated: g.updating() && m.update != g.updates, Draining: m.draining, Drained: m.drained, Repairing: m.rebooting,
		})
	}
	return list
}

func (g *group) repairs() []repair.Machine {
	var list []repair.Machine
	for _, m := range g.machines {
		is := repair.Machine{
			Name: m.name, Launched: m.launched, Joined: m.joined, Ready: m.ready(), Deleting: m.deleting, Draining: m.draining,
			Outdated: g.updating() && m.update != g.updates, Rebooting: m.rebooting,
		}
		if m.joined && !m.sick.IsZero() {
			is.Conditions = []repair.Condition{{Type: m.kind, Reason: "Sick", Since: m.sick}}
		}
		list = append(list, is)
	}
	return list
}

func (g *group) find(name string) *member {
	for _, m := range g.machines {
		if m.name == name {
			return m
		}
	}
	return nil
}

// busy is how many machines are drained, reboot or go.
func (g *group) busy() (busy, joining int) {
	for _, m := range g.machines {
		switch {
		case m.deleting || m.draining || m.rebooting:
			busy++
		case !m.joined && g.now.Sub(m.launched) < repair.JoinPatience:
			joining++
		}
	}
	return busy, joining
}

// parallel is how many may be repaired at once, as the policy has it in nodes or not at all.
func (g *group) parallel() int {
	if c := g.policy.Config; c != nil && c.MaxParallelNodesRepairedCount != nil {
		return int(*c.MaxParallelNodesRepairedCount)
	}
	return 1
}

// turn is one look of the controller: repairs first, then the rollout, then the size, as it does.
func (g *group) turn(t *rapid.T) {
	unavailable := g.rollout.Unavailable(g.desired)
	if g.policy.Unavailable = 0; g.updating() {
		g.policy.Unavailable = unavailable
	}
	decision := repair.Plan(g.policy, g.repairs(), g.now)
	before, joining := g.busy()
	for n, f := range decision.Begin {
		m := g.find(f.Machine)
		switch {
		case m == nil || m.deleting || m.draining || m.rebooting || m.joined && m.sick.IsZero():
			t.Fatalf("%s of %+v", f.Action, m)
		case f.Due.After(g.now):
			t.Fatalf("%s at %s, which is due at %s", m.name, g.now, f.Due)
		case before+joining+n+1 > g.parallel():
			t.Fatalf("a repair with %d busy and %d joining, and %d may be repaired at once", before+n, joining, g.parallel())
		case g.updating() && before+n+1 > unavailable:
			t.Fatalf("a repair with %d busy, and the rollout may have %d unavailable", before+n, unavailable)
		case g.updating() && m.update != g.updates:
			t.Fatalf("a repair of %s, which the rollout replaces", m.name)
		case len(g.policy.Shifted) > 0:
			t.Fatal("a repair in a zonal shift")
		}
		if f.Action == v1alpha1.RepairReboot {
			m.rebooting = true
		} else {
			m.deleting = true
		}
	}
	size := g.desired
	if g.updating() {
		size = g.replace(t, unavailable)
	}
	for _, action := range plan.Group(size, g.plans()) {
		for range action.Create {
			g.made++
			g.machines = append(g.machines, &member{name: fmt.Sprintf("m-%d", g.made), update: g.updates, launched: g.now})
		}
		if action.Delete != "" {
			g.find(action.Delete).deleting = true
		}
	}
}

// replace is the rollout's part of a turn, and returns the size of the group.
func (g *group) replace(t *rapid.T, unavailable int) int {
	step := plan.Rollout(g.desired, g.plans(), g.phase, g.rollout)
	g.phase = step.Phase
	busy, _ := g.busy()
	was := map[string]bool{}
	for _, m := range g.machines {
		was[m.name], m.draining = m.draining, false
	}
	for _, action := range step.Actions {
		m := g.find(action.Drain + action.Delete)
		if m.rebooting {
			t.Fatalf("the rollout takes %s, which reboots", m.name)
		}
		if m.draining = true; !was[m.name] {
			if busy++; busy > unavailable {
				t.Fatalf("the rollout has %d machines busy, and may have %d", busy, unavailable)
			}
		}
		if action.Delete != "" {
			m.deleting = true
		}
	}
	return step.Size
}

// lives has time go on: machines join, sicken, heal, lose their pods, reboot and go.
func (g *group) lives(t *rapid.T, healthy bool) {
	g.now = g.now.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "minutes")) * time.Minute)
	var left []*member
	for _, m := range g.machines {
		happens := rapid.IntRange(0, 3).Draw(t, m.name)
		switch {
		case m.deleting && happens > 0:
			continue
		case !m.joined && (happens > 0 || healthy):
			m.joined = true
		case m.draining && happens > 0:
			m.drained = true
		case m.rebooting && happens > 0:
			m.rebooting, m.sick = false, time.Time{}
		case m.joined && m.sick.IsZero() && happens == 3 && !healthy:
			m.sick, m.down = g.now, rapid.Bool().Draw(t, "down")
			if m.kind = v1alpha1.NodeKernelReady; m.down {
				m.kind = v1alpha1.NodeReady
			}
		}
		left = append(left, m)
	}
	g.machines = left
}

// Two updates, a repair and a change of size at the same time never make more machines unavailable than the rollout may
// have, nor begin more repairs than there may be at once; and when nothing more happens the group has its size, nobody
// is sick, and nobody is outdated.
func TestRepairBesideUpdates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := &group{
			desired: rapid.IntRange(1, 8).Draw(t, "desired"), now: noon, phase: plan.ScaleDown,
			rollout: plan.Policy{MaxUnavailable: rapid.IntRange(0, 3).Draw(t, "unavailable"), Zones: rapid.IntRange(0, 2).Draw(t, "zones"), Minimal: rapid.Bool().Draw(t, "minimal"), Force: true},
			policy:  repair.Policy{Enabled: true, Config: &v1alpha1.NodeRepairConfig{}},
		}
		if rapid.Bool().Draw(t, "several") {
			g.policy.Config.MaxParallelNodesRepairedCount = new(int32(rapid.IntRange(1, 4).Draw(t, "parallel")))
		}
		if rapid.Bool().Draw(t, "reboots") {
			g.policy.Config.Overrides = []v1alpha1.NodeRepairOverride{override(v1alpha1.NodeKernelReady, "Sick", 5, v1alpha1.RepairReboot)}
		}
		for range g.desired {
			g.made++
			g.machines = append(g.machines, &member{name: fmt.Sprintf("m-%d", g.made), launched: ago(60), joined: true})
		}
		turns := rapid.IntRange(5, 60).Draw(t, "turns")
		for range turns {
			switch rapid.IntRange(0, 12).Draw(t, "event") {
			case 0:
				g.updates, g.phase = g.updates+1, "" // an update, perhaps while another is under way
			case 1:
				g.desired = rapid.IntRange(1, 8).Draw(t, "size")
			case 2:
				g.policy.Shifted = []string{"a"}
			case 3:
				g.policy.Shifted = nil
			}
			g.turn(t)
			g.lives(t, false)
		}
		g.policy.Shifted = nil
		g.policy.Config.MaxUnhealthyNodeThresholdCount = new(int32(100)) // else a group may be sick for good
		for range 400 {
			g.turn(t)
			g.lives(t, true)
			if g.settled() {
				return
			}
		}
		t.Fatalf("it does not end: %d of %d machines, phase %s, %s", len(g.machines), g.desired, g.phase, say(repair.Plan(g.policy, g.repairs(), g.now)))
	})
}

// settled reports whether the group is as it is to be.
func (g *group) settled() bool {
	for _, m := range g.machines {
		if m.deleting || !m.sick.IsZero() || m.update != g.updates || !m.joined {
			return false
		}
	}
	return len(g.machines) == g.desired && !g.updating()
}
