// SPDX-License-Identifier: Apache-2.0

// Package plan compares the desired size of a node group with its machines, and returns the actions to take, each with
// its reason; and it returns the next step of a rollout. It is pure: values in, values out.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Machine is what a plan needs to know of a machine.
type Machine struct {
	Name     string
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
	// Shifted is in a zone that its cluster is shifted away from: the group takes it out of the warm pool when that is over.
	Shifted bool
}

// Action is one thing to do: make machines for the group or for its warm pool, or do something with the machine of the
// name. The others are empty.
type Action struct {
	Create int
	Warm   int    // machines to make for the warm pool
	Take   string // out of the warm pool into the group
	Return string // out of the group into the warm pool
	Drain  string
	Delete string
	Reason string // a clause for people, as "the group has 2 of 3 machines"
}

// Group returns what brings a group to its desired size: nothing if it is there, else either one action that creates or
// one for each machine to delete, the most dispensable first. Protected machines are not deleted, also if there are too
// many then.
func Group(desired int, machines []Machine) []Action {
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
		spare := slices.DeleteFunc(slices.Clone(counted), func(m Machine) bool { return m.Protected })
		slices.SortFunc(spare, dispensable)
		var actions []Action
		for _, machine := range spare[:min(surplus, len(spare))] {
			actions = append(actions, Action{Delete: machine.Name, Reason: reason + ", and " + why(machine)})
		}
		return actions
	}
	return nil
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

// dispensable orders machines by how little is lost with them: those that have not joined run no pods, those that are
// not Ready serve none, and of the rest the newest have had the least time to gather any. Names settle the order of the
// rest.
func dispensable(a, b Machine) int {
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		cmp.Compare(replaced(b), replaced(a)),
		b.Created.Compare(a.Created),
		cmp.Compare(a.Name, b.Name),
	)
}

func rank(machine Machine) int {
	switch {
	case !machine.Joined:
		return 0
	case !machine.Ready:
		return 1
	default:
		return 2
	}
}

// replaced is 1 for a machine that a rollout is to replace: it goes anyway.
func replaced(machine Machine) int {
	if machine.Outdated {
		return 1
	}
	return 0
}

func why(machine Machine) string {
	if machine.Outdated && machine.Ready {
		return "this one is to be replaced"
	}
	return [...]string{"this one has not joined yet", "the node of this one is not Ready", "this one is the newest"}[rank(machine)]
}
