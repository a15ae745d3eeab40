// SPDX-License-Identifier: Apache-2.0

package scalingplan

import (
	"cmp"
	"maps"
	"slices"

	"muster.dev/muster/api/v1alpha1"
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
		p.end(victim, shrunk(p.now, p.g.Change, victim.ID, have, have-victim.Type.Weight))
	}
}

// victim is the instance that goes first when the group shrinks, of at most a weight: in the zone with the most instances,
// by the policies. Nil if none may go.
func (p *planner) victim(weight int) *Instance {
	zones, _ := p.spread()
	var zone string
	for k := range p.all {
		if i := &p.all[k]; p.dispensable(i, weight) && (zone == "" || zones[i.Zone] > zones[zone] || zones[i.Zone] == zones[zone] && i.Zone < zone) {
			zone = i.Zone
		}
	}
	var among []*Instance
	for k := range p.all {
		if i := &p.all[k]; p.dispensable(i, weight) && i.Zone == zone {
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

// rebalance launches an instance in the zone with the fewest, or ends one in the zone with the most, if these differ by two
// or more. It is called for a group of its desired capacity: the other half follows from the size.
func (p *planner) rebalance() {
	if p.g.Refresh != nil || p.g.suspends(v1alpha1.ProcessAZRebalance, v1alpha1.ProcessLaunch, v1alpha1.ProcessTerminate) {
		return
	}
	if slices.ContainsFunc(p.all, func(i Instance) bool { return i.Counts() && i.State != v1alpha1.LifecycleInService }) {
		return
	}
	zones, _ := p.spread()
	for _, s := range p.g.Subnets {
		zones[s.Zone] += 0
	}
	for _, few := range slices.Sorted(maps.Keys(zones)) {
		victim := p.victim(p.g.Max)
		if victim == nil || zones[victim.Zone]-zones[few] < 2 {
			continue
		}
		place, weight, ok := p.placeOf(victim.Type.Weight, few)
		if !ok {
			continue
		}
		switch have := Capacity(p.all); {
		case have+weight <= p.g.Max:
			p.launch(place, weight, true, balanced(p.now, few, have, have+weight))
			return
		case have-weight >= p.g.Min:
			p.end(victim, balancedFirst(p.now, victim.ID, victim.Zone))
			return
		}
	}
}

// placeOf is a place in a zone for an instance of exactly a weight.
func (p *planner) placeOf(weight int, zone string) (Place, int, bool) {
	of := *p
	of.g.Types = slices.DeleteFunc(slices.Clone(p.g.Types), func(t Type) bool { return t.Weight != weight })
	return of.place(weight, zone)
}
