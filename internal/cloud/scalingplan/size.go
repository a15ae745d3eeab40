// SPDX-License-Identifier: Apache-2.0

package scalingplan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/zonebalance"
)

// grow asks for instances until the group has the capacity.
func (p *planner) grow(target int) {
	if p.g.suspends(v1alpha1.ProcessLaunch) {
		return
	}
	for have := Capacity(p.all); have < target; {
		place, weight, ok := p.place(p.g.Max-have, "")
		if !ok {
			return
		}
		cause := grown(p.now, p.g.Change, have, have+weight)
		if p.lost > 0 {
			cause = replacing(p.now)
			p.lost--
		}
		p.launch(place, weight, false, cause)
		have += weight
	}
}

func (p *planner) launch(place Place, weight int, spare bool, cause string) {
	of := Type{place.Type, weight}
	spot := p.isSpot()
	p.do(Action{Kind: Launch, Subnet: place.Subnet, Type: of, Spot: spot, Spare: spare, Cause: cause})
	p.all = append(p.all, Instance{Subnet: place.Subnet, Zone: p.g.zone(place.Subnet), Type: of, State: v1alpha1.LifecyclePending, Spot: spot, Spare: spare, Launched: p.now})
}

// isSpot reports whether the next instance is a spot one.
func (p *planner) isSpot() bool {
	count, onDemand := 0, 0
	for _, i := range p.all {
		if i.Counts() {
			count++
			if !i.Spot {
				onDemand++
			}
		}
	}
	above := max(0, count+1-p.g.OnDemandBase)
	return onDemand >= count+1-above+(above*p.g.OnDemandPercent+99)/100
}

// place chooses where the next instance is launched: of the first type that has a place, in the zone, if one is named, or else
// in a zone with the fewest instances, in the subnet there with the fewest. No instance weighs more than room.
func (p *planner) place(room int, zone string) (place Place, weight int, ok bool) {
	zones, subnets := p.spread()
	for _, t := range p.g.Types {
		if t.Weight > room {
			continue
		}
		var open []Subnet
		for _, s := range p.g.Subnets {
			if (zone == "" || s.Zone == zone) && !slices.Contains(p.g.Avoid, Place{s.ID, t.Name}) {
				open = append(open, s)
			}
		}
		if len(open) == 0 {
			continue
		}
		s := slices.MinFunc(open, func(a, b Subnet) int {
			return cmp.Or(cmp.Compare(zones[a.Zone], zones[b.Zone]), cmp.Compare(subnets[a.ID], subnets[b.ID]), cmp.Compare(a.ID, b.ID))
		})
		return Place{s.ID, t.Name}, t.Weight, true
	}
	return Place{}, 0, false
}

// spread counts instances by zone and by subnet.
func (p *planner) spread() (zones, subnets map[string]int) {
	zones, subnets = map[string]int{}, map[string]int{}
	for _, i := range p.all {
		if i.Counts() {
			zones[i.Zone]++
			subnets[i.Subnet]++
		}
	}
	return zones, subnets
}

// shrink ends instances until the group has the capacity. An instance that was launched before another one goes is not
// too many before it is in service.
func (p *planner) shrink(target int) {
	if p.g.suspends(v1alpha1.ProcessTerminate) {
		return
	}
	surplus := Capacity(p.all) - target
	for _, i := range p.all {
		if i.Counts() && i.Spare && i.State != v1alpha1.LifecycleInService {
			surplus -= i.Type.Weight
		}
	}
	for surplus > 0 {
		have := Capacity(p.all)
		victim := p.victim(surplus)
		if victim == nil {
			return
		}
		surplus -= victim.Type.Weight
		p.end(victim, p.balanced(victim, shrunk(p.now, p.g.Change, victim.ID, have, have-victim.Type.Weight)))
	}
}

// balanced is why an instance ends that is too many, after others were launched to balance zones, if any were.
func (p *planner) balanced(victim *Instance, cause string) string {
	var launched time.Time
	var zones []string
	for _, i := range p.all {
		if i.Spare && i.Counts() && i.ID != victim.ID {
			launched, zones = i.Launched, append(zones, i.Zone)
		}
	}
	if len(zones) == 0 {
		return cause
	}
	return zonebalance.EndCause(launched, zones, cause)
}

// victim is the instance that goes first when the group shrinks, of at most a weight: in a zone that the group has left, or
// else in the zone with the most instances, by the policies. Nil if none may go.
func (p *planner) victim(weight int) *Instance {
	var zone *zonebalance.Zone
	for _, z := range p.zones() {
		if p.victimIn(z.Name, weight) != nil && (zone == nil || z.Before(*zone)) {
			zone = &z
		}
	}
	if zone == nil {
		return nil
	}
	return p.victimIn(zone.Name, weight)
}

// victimIn is the instance of a zone that goes first, of at most a weight. Nil if no instance may go.
func (p *planner) victimIn(zone string, weight int) *Instance {
	var among []*Instance
	for k := range p.all {
		if i := &p.all[k]; i.Zone == zone && p.dispensable(i, weight) {
			among = append(among, i)
		}
	}
	if len(among) == 0 {
		return nil
	}
	return p.byPolicy(among)
}

func (p *planner) dispensable(i *Instance, weight int) bool {
	return i.ID != "" && i.Counts() && !i.Protected && i.Type.Weight <= weight && (!i.Spare || i.State == v1alpha1.LifecycleInService)
}

// byPolicy applies the policies one after the other, each to those that the one before left.
func (p *planner) byPolicy(among []*Instance) *Instance {
	policies := p.g.Policies
	if len(policies) == 0 {
		policies = []string{"Default"}
	}
	for _, policy := range policies {
		switch policy {
		case "OldestInstance":
			among = first(among, func(i *Instance) int64 { return i.Launched.UnixNano() })
		case "NewestInstance":
			among = first(among, func(i *Instance) int64 { return -i.Launched.UnixNano() })
		case "OldestLaunchTemplate", "Default":
			among = first(among, func(i *Instance) int64 { return i.Template })
		}
	}
	among = first(among, func(i *Instance) int64 { return i.Launched.UnixNano() })
	return slices.MinFunc(among, func(a, b *Instance) int { return cmp.Compare(a.ID, b.ID) })
}

// first keeps those with the lowest key.
func first(among []*Instance, key func(*Instance) int64) []*Instance {
	lowest := key(slices.MinFunc(among, func(a, b *Instance) int { return cmp.Compare(key(a), key(b)) }))
	return slices.DeleteFunc(slices.Clone(among), func(i *Instance) bool { return key(i) != lowest })
}

// rebalance launches an instance in a zone with few, if zones differ by two or more, also if the group has its maximum: one
// more is what Auto Scaling allows. It is called for a group of its desired capacity: the other half follows from the size.
// Instances in zones that the group is not in any more go like that, too.
func (p *planner) rebalance() {
	if p.g.Refresh != nil || p.g.suspends(v1alpha1.ProcessAZRebalance, v1alpha1.ProcessLaunch, v1alpha1.ProcessTerminate) {
		return
	}
	if slices.ContainsFunc(p.all, func(i Instance) bool { return i.Counts() && i.State != v1alpha1.LifecycleInService }) {
		return
	}
	zones := p.zones()
	for {
		moves := zonebalance.Moves(zones, 1)
		if len(moves) == 0 {
			return
		}
		victim := p.victimIn(moves[0].From, math.MaxInt)
		if place, weight, ok := p.placeOf(victim.Type.Weight, moves[0].To); ok {
			p.launch(place, weight, true, zonebalance.LaunchCause(p.now, zones))
			return
		}
		zones[slices.IndexFunc(zones, func(z zonebalance.Zone) bool { return z.Name == moves[0].To })].Open = false
	}
}

// zones are those of the group, and those that it has left and still has instances in.
func (p *planner) zones() []zonebalance.Zone {
	counts, _ := p.spread()
	movable := map[string]int{}
	for k := range p.all {
		if i := &p.all[k]; p.dispensable(i, math.MaxInt) {
			movable[i.Zone]++
		}
	}
	left := maps.Clone(counts)
	var zones []zonebalance.Zone
	for _, s := range p.g.Subnets {
		delete(left, s.Zone)
		if !slices.ContainsFunc(zones, func(z zonebalance.Zone) bool { return z.Name == s.Zone }) {
			zones = append(zones, zonebalance.Zone{Name: s.Zone, Machines: counts[s.Zone], Movable: movable[s.Zone], Open: true})
		}
	}
	delete(left, "") // it is not known yet
	for name, n := range left {
		zones = append(zones, zonebalance.Zone{Name: name, Machines: n, Movable: movable[name], Left: true})
	}
	return zones
}

// placeOf is a place in a zone for an instance of exactly a weight.
func (p *planner) placeOf(weight int, zone string) (Place, int, bool) {
	of := *p
	of.g.Types = slices.DeleteFunc(slices.Clone(p.g.Types), func(t Type) bool { return t.Weight != weight })
	return of.place(weight, zone)
}
