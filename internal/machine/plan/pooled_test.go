// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/machine/zonebalance"
)

// pooled carries out plans of a group that has a warm pool and is rebalanced, as the controller of node groups does.
type pooled struct {
	desired  int
	pool     plan.Pool
	zones    []zonebalance.Zone
	atOnce   int
	machines []plan.Machine
	made     int
}

// plan is what is to be done. Which zones are open is looked up when machines are to be made that even the group, as there.
func (g *pooled) plan() []plan.Action {
	balance := plan.Balance{Zones: slices.Clone(g.zones), AtOnce: g.atOnce}
	for i := range balance.Zones {
		balance.Zones[i].Open = true
	}
	actions := plan.WithPool(g.desired, g.machines, g.pool, balance)
	if slices.ContainsFunc(actions, func(a plan.Action) bool { return len(a.Zones) > 0 }) {
		balance.Zones = g.zones
		actions = plan.WithPool(g.desired, g.machines, g.pool, balance)
	}
	return actions
}

// make makes machines where there is room, each in a zone with the fewest machines of the group and its pool.
func (g *pooled) make(count int, zones []string, warm bool) {
	var subnets []plan.Subnet
	for _, z := range g.zones {
		if !z.Open || len(zones) > 0 && !slices.Contains(zones, z.Name) {
			continue
		}
		s := plan.Subnet{ID: z.Name, Zone: z.Name}
		for _, m := range g.machines {
			if m.Zone == z.Name && !m.Deleting {
				s.Machines++
			}
		}
		subnets = append(subnets, s)
	}
	for _, zone := range plan.Place(count, subnets, func(string) bool { return true }) {
		g.made++
		g.machines = append(g.machines, plan.Machine{Name: fmt.Sprintf("new-%03d", g.made), Zone: zone, Created: at(100 + g.made), Warm: warm, Spare: len(zones) > 0})
	}
}

// turn carries out one plan, and returns how many actions it had.
func (g *pooled) turn(t *rapid.T) int {
	actions := g.plan()
	for _, action := range actions {
		switch {
		case action.Create > 0:
			g.make(action.Create, action.Zones, false)
		case action.Warm > 0:
			g.make(action.Warm, nil, true)
		case action.Take != "":
			m := named(t, g.machines, action.Take)
			m.Warm, m.Prepared, m.Joined, m.Ready = false, false, false, false
		case action.Return != "":
			m := named(t, g.machines, action.Return)
			m.Warm, m.Joined, m.Ready = true, false, false
		default:
			named(t, g.machines, action.Delete).Deleting = true
		}
	}
	return len(actions)
}

// lives has machines join or boot, and those that are deleted go: all, or some.
func (g *pooled) lives(t *rapid.T, all bool) {
	g.machines = slices.DeleteFunc(g.machines, func(m plan.Machine) bool {
		return m.Deleting && (all || rapid.Bool().Draw(t, "goes"))
	})
	for i := range g.machines {
		switch m := &g.machines[i]; {
		case m.Deleting || !all && rapid.Bool().Draw(t, "waits"):
		case m.Warm:
			m.Prepared = true
		default:
			m.Joined, m.Ready, m.Spare = true, true, false
		}
	}
}

// disturb has somebody scale the group or its pool, or a zone fill.
func (g *pooled) disturb(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		g.desired = rapid.IntRange(0, 8).Draw(t, "desired")
	case 1:
		g.pool = plan.Pool{Size: rapid.IntRange(0, 4).Draw(t, "pool"), Reuse: rapid.Bool().Draw(t, "reuse")}
	case 2:
		z := &g.zones[rapid.IntRange(0, len(g.zones)-1).Draw(t, "which")]
		z.Open = !z.Open
	}
}

// A group with a warm pool that is left alone comes to rest with its size, even zones as far as they are open, and a full
// pool, and each machine that is made on the way makes its zones more even.
func TestBalanceBesideAPoolConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &pooled{
			desired: rapid.IntRange(0, 8).Draw(t, "desired"), zones: openZones([]string{"a", "b", "c"}[:rapid.IntRange(2, 3).Draw(t, "zones")]...), atOnce: rapid.IntRange(1, 3).Draw(t, "at once"),
			pool: plan.Pool{Size: rapid.IntRange(0, 4).Draw(t, "pool"), Reuse: rapid.Bool().Draw(t, "reuse")},
		}
		for range rapid.IntRange(0, 30).Draw(t, "turns") {
			g.turn(t)
			g.lives(t, false)
			if rapid.Bool().Draw(t, "disturbed") {
				g.disturb(t)
			}
		}
		g.lives(t, true)
		if !slices.ContainsFunc(g.zones, func(z zonebalance.Zone) bool { return z.Open }) {
			g.zones[0].Open = true
		}
		before := g.made
		for turns := 0; ; turns++ {
			done := g.turn(t)+g.turn(t) == 0 // machines boot for more than one turn
			g.lives(t, true)
			if done {
				break
			}
			if turns > 100 {
				t.Fatalf("it does not end: %+v, plans %+v", g, g.plan())
			}
		}
		if most := g.desired + g.pool.Size + len(g.machines); g.made-before > most {
			t.Fatalf("%d machines were made: %+v", g.made-before, g)
		}
		in := map[string]int{}
		for _, m := range g.machines {
			if !m.Warm {
				in[m.Zone]++
			}
		}
		for _, from := range g.zones {
			for _, to := range g.zones {
				if to.Open && in[from.Name]-in[to.Name] > 1 {
					t.Fatalf("the group stays uneven: %v in %+v", in, g.zones)
				}
			}
		}
	})
}
