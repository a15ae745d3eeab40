// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/machine/zonebalance"
)

func openZones(names ...string) []zonebalance.Zone {
	var zones []zonebalance.Zone
	for _, name := range names {
		zones = append(zones, zonebalance.Zone{Name: name, Open: true})
	}
	return zones
}

func TestBalance(t *testing.T) {
	in := func(zone, name string, created int) plan.Machine {
		return plan.Machine{Name: name, Zone: zone, Created: at(created), Joined: true, Ready: true}
	}
	with := func(m plan.Machine, change func(*plan.Machine)) plan.Machine {
		change(&m)
		return m
	}
	a, b, c, d := in("z1", "a", 1), in("z1", "b", 2), in("z1", "c", 3), in("z2", "d", 1)
	spare := plan.Machine{Name: "spare", Zone: "z2", Created: at(9), Spare: true}
	arrived := with(spare, func(m *plan.Machine) { m.Joined, m.Ready = true, true })
	protect := func(m *plan.Machine) { m.Protected = true }
	two := plan.Balance{Zones: openZones("z1", "z2"), AtOnce: 1}
	uneven := []plan.Action{{Create: 1, Zones: []string{"z2"}, Reason: "its zones are uneven: z1 3, z2 1"}}
	for name, test := range map[string]struct {
		desired  int
		balance  plan.Balance
		machines []plan.Machine
		want     []plan.Action
	}{
		"uneven":                            {4, two, []plan.Machine{a, b, c, d}, uneven},
		"even":                              {3, two, []plan.Machine{a, b, d}, nil},
		"not to be":                         {4, plan.Balance{}, []plan.Machine{a, b, c, d}, nil},
		"a zone is full":                    {4, plan.Balance{Zones: []zonebalance.Zone{{Name: "z1", Open: true}, {Name: "z2"}}, AtOnce: 1}, []plan.Machine{a, b, c, d}, nil},
		"two at once":                       {5, plan.Balance{Zones: openZones("z1", "z2"), AtOnce: 2}, []plan.Machine{a, b, c, in("z1", "e", 4), in("z1", "f", 5)}, []plan.Action{{Create: 2, Zones: []string{"z2", "z2"}, Reason: "its zones are uneven: z1 5, z2 0"}}},
		"too few":                           {5, two, []plan.Machine{a, b, c, d}, []plan.Action{{Create: 1, Reason: "the group has 4 of 5 machines"}}},
		"one is not Ready":                  {4, two, []plan.Machine{a, b, with(c, func(m *plan.Machine) { m.Ready = false }), d}, nil},
		"one is drained":                    {4, two, []plan.Machine{a, b, with(c, func(m *plan.Machine) { m.Drains = true }), d}, nil},
		"one is repaired":                   {4, two, []plan.Machine{a, b, with(c, func(m *plan.Machine) { m.Repairing = true }), d}, nil},
		"one goes":                          {4, two, []plan.Machine{a, b, c, d, {Name: "gone", Zone: "z2", Deleting: true}}, nil},
		"all protected":                     {4, two, []plan.Machine{with(a, protect), with(b, protect), with(c, protect), d}, nil},
		"one is not":                        {4, two, []plan.Machine{with(a, protect), with(b, protect), c, d}, uneven},
		"the spare boots":                   {4, two, []plan.Machine{a, b, c, d, spare}, nil},
		"it boots, an emptier zone is full": {4, plan.Balance{Zones: openZones("z0", "z1", "z2"), AtOnce: 1}, []plan.Machine{a, b, c, d, spare}, nil},
		"it serves":                         {4, two, []plan.Machine{a, b, c, d, arrived}, []plan.Action{{Delete: "c", Reason: "the group has 5 machines, and is to have 4, and this one is the newest in z1, which has the most"}}},
		"it comes late":                     {4, two, []plan.Machine{a, b, c, d, with(spare, func(m *plan.Machine) { m.Late = true })}, []plan.Action{{Delete: "spare", Reason: "the group has 5 machines, and is to have 4, and this one has not joined yet"}}},
		"suspended":                         {4, plan.Balance{}, []plan.Machine{a, b, c, d, spare}, []plan.Action{{Delete: "spare", Reason: "the group has 5 machines, and is to have 4, and this one has not joined yet"}}},
		"smaller meanwhile":                 {3, two, []plan.Machine{a, b, c, d, spare}, []plan.Action{{Delete: "c", Reason: "the group has 5 machines, and is to have 3, and this one is the newest in z1, which has the most"}}},
		"not needed then":                   {3, two, []plan.Machine{a, b, d, spare}, []plan.Action{{Delete: "spare", Reason: "the group has 4 machines, and is to have 3, and this one has not joined yet"}}},
		"larger meanwhile":                  {5, two, []plan.Machine{a, b, c, d, spare}, nil},
		"one died meanwhile, and goes":      {4, two, []plan.Machine{a, b, with(c, func(m *plan.Machine) { m.Deleting = true }), d, spare}, nil},
		"unknown zones stay":                {2, two, []plan.Machine{in("z9", "a", 1), in("", "b", 2)}, nil},
	} {
		if diff := cmp.Diff(test.want, test.balance.Group(test.desired, test.machines)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A pool gives no machine to a zone that is to get one, and is left alone by it.
func TestBalanceBesideAPool(t *testing.T) {
	in := func(zone, name string) plan.Machine {
		return plan.Machine{Name: name, Zone: zone, Created: at(1), Joined: true, Ready: true}
	}
	warm := plan.Machine{Name: "w", Zone: "z1", Created: at(1), Warm: true, Prepared: true}
	got := plan.WithPool(2, []plan.Machine{in("z1", "a"), in("z1", "b"), warm}, plan.Pool{Size: 1}, plan.Balance{Zones: openZones("z1", "z2"), AtOnce: 1})
	if want := []plan.Action{{Create: 1, Zones: []string{"z2"}, Reason: "its zones are uneven: z1 2, z2 0"}}; cmp.Diff(want, got) != "" {
		t.Error(cmp.Diff(want, got))
	}
}

// balanced carries out plans of a group that is rebalanced.
type balanced struct {
	desired  int
	balance  plan.Balance
	off      bool // its process is suspended, its cluster shifted, or it is rolled out
	machines []plan.Machine
	made     int
}

// turn carries out one plan, and fails the test if an action breaks a law. It reports whether nothing was to be done.
func (g *balanced) turn(t *rapid.T) bool {
	balance := g.balance
	if g.off {
		balance = plan.Balance{}
	}
	before := counted(g.machines)
	actions := balance.Group(g.desired, g.machines)
	if before > g.desired { // which zones are open is looked up when machines are to be made alone
		unknown := balance
		unknown.Zones = slices.Clone(balance.Zones)
		for i := range unknown.Zones {
			unknown.Zones[i].Open = true
		}
		if diff := cmp.Diff(actions, unknown.Group(g.desired, g.machines)); diff != "" {
			t.Fatalf("what is done with too many machines depends on which zones are open:\n%s", diff)
		}
	}
	for _, action := range actions {
		if action.Reason == "" || len(action.Zones) > 0 && len(action.Zones) != action.Create {
			t.Fatalf("%+v", action)
		}
		for i := range action.Create {
			g.made++
			m := plan.Machine{Name: fmt.Sprintf("new-%03d", g.made), Zone: rapid.SampledFrom(g.balance.Zones).Draw(t, "zone").Name, Created: at(100 + g.made)}
			if len(action.Zones) > 0 {
				m.Zone, m.Spare = action.Zones[i], true
				if at := slices.IndexFunc(g.balance.Zones, func(z zonebalance.Zone) bool { return z.Name == m.Zone }); !g.balance.Zones[at].Open || g.off {
					t.Fatalf("%+v, and the zone is not open: %+v", action, g)
				}
			}
			g.machines = append(g.machines, m)
		}
		if action.Delete != "" {
			m := named(t, g.machines, action.Delete)
			m.Deleting = true
			ready, kept := 0, false
			for _, other := range g.machines {
				ready += counted([]plan.Machine{other})
				if !other.Ready && !other.Deleting {
					ready, kept = ready-1, kept || other.Protected
				}
			}
			if m.Protected || m.Ready && ready < g.desired && !kept {
				t.Fatalf("%+v of %+v: %d are Ready", action, g, ready)
			}
		}
	}
	if now := counted(g.machines); now > max(before, g.desired+g.balance.AtOnce) {
		t.Fatalf("%d machines of %d, after %+v", now, g.desired, actions)
	}
	return len(actions) == 0
}

// lives has machines join, and those that are deleted go.
func (g *balanced) lives(t *rapid.T, surely bool) {
	g.machines = slices.DeleteFunc(g.machines, func(m plan.Machine) bool {
		return m.Deleting && (surely || rapid.Bool().Draw(t, "goes"))
	})
	for i := range g.machines {
		if m := &g.machines[i]; !m.Deleting && (surely || rapid.Bool().Draw(t, "joins")) {
			m.Joined, m.Ready, m.Spare, m.Late, m.Drains, m.Repairing = true, true, false, false, false, false
		}
	}
}

// disturb has one thing happen to the group: a repair, somebody who scales or protects, a zone that fills, a shift.
func (g *balanced) disturb(t *rapid.T) {
	what := rapid.SampledFrom([]string{"scaled", "shift", "full", "dies", "repaired", "reboots", "protected", "late"}).Draw(t, "what")
	switch what {
	case "scaled":
		g.desired = rapid.IntRange(0, 8).Draw(t, "desired")
	case "shift":
		g.off = !g.off
	case "full":
		z := &g.balance.Zones[rapid.IntRange(0, len(g.balance.Zones)-1).Draw(t, "which")]
		z.Open = !z.Open
	}
	if len(g.machines) == 0 {
		return
	}
	m := &g.machines[rapid.IntRange(0, len(g.machines)-1).Draw(t, "whom")]
	switch what {
	case "dies":
		m.Ready = false
	case "repaired":
		m.Deleting = true
	case "reboots":
		m.Ready, m.Repairing = false, true
	case "protected":
		m.Protected = !m.Protected
	case "late":
		m.Late = m.Spare
	}
}

// Whatever happens to a group meanwhile, it comes to its size and even zones when it is left alone, as far as zones are
// open and machines may end; and on the way no machine that serves ends before enough others do.
func TestBalanceConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &balanced{desired: rapid.IntRange(0, 8).Draw(t, "desired"), balance: plan.Balance{Zones: openZones([]string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "zones")]...), AtOnce: rapid.IntRange(1, 3).Draw(t, "at once")}}
		for range rapid.IntRange(0, 40).Draw(t, "turns") {
			g.turn(t)
			g.lives(t, false)
			if rapid.Bool().Draw(t, "disturbed") {
				g.disturb(t)
			}
		}
		g.off = false
		for turns := 0; ; turns++ {
			if g.turn(t) && !slices.ContainsFunc(g.machines, func(m plan.Machine) bool { return m.Deleting || !m.Ready }) {
				break
			}
			g.lives(t, true)
			if turns > 200 {
				t.Fatalf("it does not end: %+v", g)
			}
		}
		protected := 0
		for _, m := range g.machines {
			if m.Protected {
				protected++
			}
		}
		if n := counted(g.machines); n != max(g.desired, min(n, protected)) {
			t.Fatalf("%d machines of %d, %d protected", n, g.desired, protected)
		}
		for _, from := range g.balance.Zones {
			for _, to := range g.balance.Zones {
				movable := slices.ContainsFunc(g.machines, func(m plan.Machine) bool { return m.Zone == from.Name && !m.Protected })
				if n := g.in(from.Name) - g.in(to.Name); n > 1 && to.Open && movable && counted(g.machines) == g.desired {
					t.Fatalf("%s has %d more than %s: %+v", from.Name, n, to.Name, g)
				}
			}
		}
	})
}

func (g *balanced) in(zone string) int {
	return counted(slices.DeleteFunc(slices.Clone(g.machines), func(m plan.Machine) bool { return m.Zone != zone }))
}
