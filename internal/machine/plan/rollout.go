// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
)

// Step is the next step of a rollout, which replaces the outdated machines of a group one at a time.
type Step struct {
	Size     int    // of the group meanwhile
	Outdated int    // machines that are still to be replaced
	Drain    string // the machine whose pods are to be evicted, or ""
	Delete   bool   // it is to be deleted now
	Stuck    bool   // its pods did not go in time, which ends the rollout
}

// Rollout returns the next step:
//
//	one machine more than desired ──► it is Ready ──► drain the oldest outdated one ──► its pods are gone ──► delete it ──► it is gone ──► the next
//	                                                                  └─ they do not go in time: deleted if forced, else stuck
//
// Draining is the machine that was chosen before, or "".
func Rollout(desired int, machines []Machine, draining string, force bool) Step {
	var outdated []Machine
	counted, waiting, leaving := 0, 0, 0
	for _, machine := range machines {
		switch {
		case machine.Deleting:
			leaving++
			continue
		case machine.Outdated:
			outdated = append(outdated, machine)
		case !machine.Ready:
			waiting++
		}
		counted++
	}
	if len(outdated) == 0 || desired <= 0 {
		return Step{Size: max(desired, 0)}
	}
	step := Step{Size: desired + 1, Outdated: len(outdated)}
	if i := slices.IndexFunc(outdated, func(m Machine) bool { return m.Name == draining }); i >= 0 {
		chosen := outdated[i]
		step.Drain = chosen.Name
		step.Delete = chosen.Drained || chosen.TimedOut && force
		step.Stuck = chosen.TimedOut && !chosen.Drained && !force
		return step
	}
	if leaving > 0 { // no third machine for the place of one
		step.Size = min(max(counted, desired), desired+1)
		return step
	}
	if counted == desired+1 && waiting == 0 {
		slices.SortFunc(outdated, func(a, b Machine) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
		})
		step.Drain = outdated[0].Name
	}
	return step
}
