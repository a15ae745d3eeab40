// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// Pool is the warm pool of a group.
type Pool struct {
	Size  int  // machines that it is to have; 0 if there is no pool
	Reuse bool // a machine that the group does not need returns to the pool, if the pool has room
}

// WithPool returns what brings a group and its warm pool to their sizes. Machines of the pool do not count as machines
// of the group. The group takes machines of the pool before it has any made:
//
//	too few in the group    prepared machines of the pool, then those that boot yet, then new ones; of the pool's that are
//	                        as useful those first in whose zone the group has the fewest machines
//	too many in the group   those that Group chooses are deleted; with Reuse a machine that is Ready returns while the pool has room
//	too few in the pool     new ones
//	too many in the pool    those that have not booted are deleted first, then the newest
//	in a shifted zone       stays in the pool, which it counts in
//	outdated in the pool    deleted at once: no pods are there, and the group must not take it
//
// Machines that make zones even are made anew, and never taken. Each machine is in one action at most.
func WithPool(desired int, machines []Machine, pool Pool, balance Balance) []Action {
	var group, warm []Machine
	var actions []Action
	for _, m := range machines {
		switch {
		case !m.Warm:
			group = append(group, m)
		case m.Deleting:
		case m.Outdated:
			actions = append(actions, Action{Delete: m.Name, Reason: "it waits in the warm pool, and is to be replaced"})
		default:
			warm = append(warm, m)
		}
	}
	slices.SortFunc(actions, func(a, b Action) int { return cmp.Compare(a.Delete, b.Delete) })
	slices.SortFunc(warm, useful)
	zones := map[string]int{}
	for _, m := range group {
		if !m.Deleting {
			zones[m.Zone]++
		}
	}
	for _, action := range balance.Group(desired, group) {
		for ; action.Create > 0 && len(action.Zones) == 0 && len(warm) > 0 && !warm[0].Shifted; action.Create-- {
			at := taken(warm, zones)
			actions = append(actions, Action{Take: warm[at].Name, Reason: action.Reason + ", and " + inPool(warm[at])})
			zones[warm[at].Zone]++
			warm = slices.Delete(warm, at, at+1)
		}
		at := slices.IndexFunc(group, func(m Machine) bool { return m.Name == action.Delete })
		if at >= 0 && pool.Reuse && group[at].Ready && !group[at].Outdated && len(warm) < pool.Size {
			action.Return, action.Delete = action.Delete, ""
			warm = append(warm, Machine{Name: "", Warm: true})
		}
		if action.Create > 0 || action.Delete != "" || action.Return != "" {
			actions = append(actions, action)
		}
	}
	return append(actions, pool.fill(warm)...)
}

// taken is the machine of a pool that the group takes next, which has some in each zone: among those that are as useful as the first, the
// first of a zone with the fewest.
func taken(warm []Machine, zones map[string]int) int {
	at := 0
	for i, m := range warm {
		if m.Shifted == warm[0].Shifted && m.Prepared == warm[0].Prepared && zones[m.Zone] < zones[warm[at].Zone] {
			at = i
		}
	}
	return at
}

// fill returns what brings a pool that has some machines, the most useful first, to its size.
func (p Pool) fill(warm []Machine) []Action {
	size := max(p.Size, 0)
	reason := fmt.Sprintf("the warm pool has %d machines, and is to have %d", len(warm), size)
	if len(warm) < size {
		return []Action{{Warm: size - len(warm), Reason: reason}}
	}
	var actions []Action
	for _, m := range slices.Backward(warm[size:]) {
		actions = append(actions, Action{Delete: m.Name, Reason: reason})
	}
	return actions
}

// useful orders machines of a pool: those that have booted first, of them the oldest. Machines in shifted zones come
// last.
func useful(a, b Machine) int {
	return cmp.Or(cmp.Compare(shifted(a), shifted(b)), cmp.Compare(booted(b), booted(a)), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

func shifted(m Machine) int {
	if m.Shifted {
		return 1
	}
	return 0
}

func booted(m Machine) int {
	if m.Prepared {
		return 1
	}
	return 0
}

func inPool(m Machine) string {
	if m.Prepared {
		return "this one is in its warm pool"
	}
	return "this one boots in its warm pool"
}
