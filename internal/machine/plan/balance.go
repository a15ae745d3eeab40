// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"muster.dev/muster/internal/machine/zonebalance"
)

// Balance says how a group is rebalanced over its zones. The zero value does not rebalance.
type Balance struct {
	// Zones of the group's subnets; the fields Name and Open count. Machines in other zones stay where they are.
	Zones []zonebalance.Zone
	// AtOnce is how many machines the group may have in addition meanwhile.
	AtOnce int
}

// Group returns what brings a group to its desired size, as the function Group does, and what makes its zones even when it
// is of that size:
//
//	all machines are Ready, none goes ──► spare ones are made in emptier zones ──► one is Ready ──► one in the fuller zone is deleted
//	                                                       └─ not needed any more, or late: deleted
//
// So the group has no fewer machines than desired that are Ready because of it, and AtOnce more than desired at most. A spare
// machine that boots is none too many while the zones need it, and takes the place of one that goes meanwhile.
func (b Balance) Group(desired int, machines []Machine) []Action {
	desired = max(desired, 0)
	counted := make([]Machine, 0, len(machines))
	for _, machine := range machines {
		if !machine.Deleting {
			counted = append(counted, machine)
		}
	}
	reason := has(len(counted), desired)
	switch surplus := len(counted) - desired; {
	case surplus < 0:
		return []Action{{Create: -surplus, Reason: reason}}
	case surplus > 0:
		rest := b.without(counted, surplus)
		return shrink(rest, surplus-(len(counted)-len(rest)), reason)
	case len(counted) == len(machines):
		return b.begin(counted)
	}
	return nil
}

// begin makes spare machines in the emptier zones of a group that is of its size and whose machines all serve.
func (b Balance) begin(machines []Machine) []Action {
	if slices.ContainsFunc(machines, func(m Machine) bool { return !m.Ready || m.Outdated || m.Drains || m.Draining || m.Repairing }) {
		return nil
	}
	zones := b.survey(machines)
	moves := zonebalance.Moves(zones, b.AtOnce)
	if len(moves) == 0 {
		return nil
	}
	action := Action{Create: len(moves), Reason: "its zones are uneven: " + zonebalance.Counts(zones)}
	for _, move := range moves {
		action.Zones = append(action.Zones, move.To)
	}
	return []Action{action}
}

// without leaves out of machines the spare ones that are waited for: those that boot in a zone that is to get a machine,
// the oldest of them, and no more than are too many. Zones without such a machine do not count as open here: which of them are
// is not known between two launches, and a machine that boots for want of room in an emptier zone is waited for all the same.
func (b Balance) without(machines []Machine, surplus int) []Machine {
	var rest, spare []Machine
	for _, m := range machines {
		if m.Spare && !m.Ready && !m.Late {
			spare = append(spare, m)
		} else {
			rest = append(rest, m)
		}
	}
	slices.SortFunc(spare, func(a, b Machine) int { return newer(b, a) })
	zones := b.survey(rest)
	for range min(surplus, b.AtOnce) {
		for i := range zones {
			zones[i].Open = slices.ContainsFunc(spare, func(m Machine) bool { return m.Zone == zones[i].Name })
		}
		moves := zonebalance.Moves(zones, 1)
		if len(moves) == 0 {
			break
		}
		at := slices.IndexFunc(spare, func(m Machine) bool { return m.Zone == moves[0].To })
		spare = slices.Delete(spare, at, at+1)
		zonebalance.Carry(zones, moves[0])
	}
	return append(rest, spare...)
}

// survey counts machines in the group's zones.
func (b Balance) survey(machines []Machine) []zonebalance.Zone {
	zones := slices.Clone(b.Zones)
	for i := range zones {
		zones[i].Machines, zones[i].Movable = 0, 0
		for _, m := range machines {
			if m.Zone != zones[i].Name {
				continue
			}
			zones[i].Machines++
			if !m.Protected {
				zones[i].Movable++
			}
		}
	}
	return zones
}
