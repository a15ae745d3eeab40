// SPDX-License-Identifier: Apache-2.0

// Package plan compares the desired size of a node group with its machines, and returns the actions to take, each with
// its reason; and it returns the next step of a rollout. It is pure: values in, values out.
package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Machine is what a plan needs to know of a machine.
type Machine struct {
	Name     string
	Zone     string // of availability; empty if it has none yet
	Created  time.Time
	Joined   bool // its Node is registered
	Ready    bool // its Node is Ready
	Stopped  bool // it does not run, as its spec says
	Deleting bool // it is on its way out, and does not count
	Outdated bool // a rollout is to replace it
	Draining bool // the rollout has chosen it
	Drained  bool // its pods are gone
	TimedOut bool // its pods are not gone, and it has waited for them for long enough
	// Drains says that it has been drained, or was when it was last looked at. Unless it is Draining, that was for an
	// earlier rollout.
	Drains bool
	// Repairing is drained for a reboot, or reboots.
	Repairing bool
	// Protected is kept when there are too many. It counts.
	Protected bool
	// Warm waits in the warm pool, and does not count as a machine of the group.
	Warm bool
	// Prepared has booted and is in the state of the pool. Others of the pool have not booted yet.
	Prepared bool
	// Spare was launched to make zones even, and has not been Ready yet.
	Spare bool
	// Late is not Ready in the time that a machine has for that.
	Late bool
	// Shifted is in a zone that its cluster is shifted away from: the group takes it out of the warm pool when that is over.
	Shifted bool
}

// Action is one thing to do: make machines for the group or for its warm pool, or do something with the machine of the
// name. The others are empty.
type Action struct {
	Create int
	Zones  []string // of the machines to make, one for each; empty if any may be
	Warm   int      // machines to make for the warm pool
	Take   string   // out of the warm pool into the group
	Return string   // out of the group into the warm pool
	Drain  string
	Delete string
	Reason string // a clause for people, as "the group has 2 of 3 machines"
}

// Group returns what brings a group to its desired size: nothing if it is there, else either one action that creates or
// one for each machine to delete, the most dispensable first. Among machines that are as dispensable as each other, the zone
// with the most machines loses a machine first. Protected machines are not deleted, also if there are too many then.
func Group(desired int, machines []Machine) []Action { return Balance{}.Group(desired, machines) }

// shrink deletes a number of machines, but none that is protected.
func shrink(machines []Machine, surplus int, reason string) (actions []Action) {
	zones := map[string]int{}
	for _, machine := range machines {
		zones[machine.Zone]++
	}
	spare := slices.DeleteFunc(slices.Clone(machines), func(m Machine) bool { return m.Protected })
	slices.SortFunc(spare, func(a, b Machine) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), newer(a, b)) })
	for len(spare) > 0 && len(actions) < surplus {
		end := slices.IndexFunc(spare, func(m Machine) bool { return rank(m) != rank(spare[0]) })
		if end < 0 {
			end = len(spare)
		}
		inZone := map[string][]Machine{} // of one rank, the newest first
		for _, machine := range spare[:end] {
			inZone[machine.Zone] = append(inZone[machine.Zone], machine)
		}
		for len(inZone) > 0 && len(actions) < surplus {
			zone := slices.MinFunc(slices.Collect(maps.Keys(inZone)), func(a, b string) int {
				return cmp.Or(cmp.Compare(zones[b], zones[a]), newer(inZone[a][0], inZone[b][0]))
			})
			machine := inZone[zone][0]
			actions = append(actions, Action{Delete: machine.Name, Reason: reason + ", and " + why(machine, zones)})
			zones[zone]--
			if inZone[zone] = inZone[zone][1:]; len(inZone[zone]) == 0 {
				delete(inZone, zone)
			}
		}
		spare = spare[end:]
	}
	return actions
}

// has says how many machines a group has, and is to have.
func has(counted, desired int) string {
	noun := "machines"
	if max(counted, desired) == 1 {
		noun = "machine"
	}
	if counted > desired {
		return fmt.Sprintf("the group has %d %s, and is to have %d", counted, noun, desired)
	}
	return fmt.Sprintf("the group has %d of %d %s", counted, desired, noun)
}

// rank orders machines by how little is lost with them: those that have not joined run no pods, those that are not Ready
// serve none, and those that a rollout is to replace go anyway. Of each rank the zone with the most machines loses one
// first, as in Auto Scaling groups.
func rank(machine Machine) int {
	switch {
	case !machine.Joined && machine.Outdated:
		return 0
	case !machine.Joined:
		return 1
	case !machine.Ready && machine.Outdated:
		return 2
	case !machine.Ready:
		return 3
	case machine.Outdated:
		return 4
	}
	return 5
}

// newer orders machines of a rank and a zone: the newest have had the least time to gather pods. Names settle the order of
// the rest.
func newer(a, b Machine) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name))
}

// fewest is how many machines the zone with the fewest has.
func fewest(zones map[string]int) int {
	least := math.MaxInt
	for _, n := range zones {
		least = min(least, n)
	}
	return least
}

// why says why a machine is chosen, with the machines of each zone.
func why(machine Machine, zones map[string]int) string {
	switch {
	case !machine.Joined:
		return "this one has not joined yet"
	case !machine.Ready:
		return "the node of this one is not Ready"
	case machine.Outdated:
		return "this one is to be replaced"
	case fewest(zones) < zones[machine.Zone]:
		return fmt.Sprintf("this one is the newest in %s, which has the most", machine.Zone)
	}
	return "this one is the newest"
}
