// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// Policy is how a rollout replaces the outdated machines of a group, in EKS's terms.
type Policy struct {
	MaxUnavailable int  // machines that are drained or go at once; 0 if the percentage says it
	Percentage     int  // of the desired size; 0 with MaxUnavailable 0 is one machine
	Zones          int  // that the machines of the group are spread over
	Minimal        bool // a machine goes before the one in its place is made
	Force          bool // a machine goes although its pods did not go in time
}

// MostAtOnce is the most that a rollout makes unavailable, or has in addition, at once.
const MostAtOnce = 100

// Unavailable is how many machines are drained or go at once: of a percentage as many as it has wholly, but one at least.
func (p Policy) Unavailable(desired int) int {
	return min(max(cmp.Or(p.MaxUnavailable, desired*p.Percentage/100), 1), MostAtOnce)
}

// surge is how many machines a group has in addition while some are outdated: two for each zone, or as many as may be
// unavailable, but none that would take nobody's place.
func (p Policy) surge(desired, outdated int) int {
	if p.Minimal {
		return 0
	}
	return min(max(2*p.Zones, p.Unavailable(desired)), outdated, MostAtOnce)
}

// Phase is how far a rollout is. It does not go back.
type Phase string

// The phases of a rollout after the group was changed, which is EKS's first.
const (
	ScaleUp   Phase = "ScaleUp"   // the additional machines are made, and become Ready
	Upgrade   Phase = "Upgrade"   // outdated machines are drained, and go
	ScaleDown Phase = "ScaleDown" // the group returns to its size
)

// Step is what a rollout does next.
type Step struct {
	Phase    Phase
	Size     int      // of the group meanwhile
	Outdated int      // machines that are still to be replaced
	Actions  []Action // machines to drain, or to go on draining, and to delete
	Stuck    string   // the machine whose pods did not go in time, which ends the rollout
}

// Rollout returns the next step of a rollout that is in a phase, "" at first:
//
//	additional machines are made ──► all are Ready ──► the oldest outdated ones are drained ──► the pods of one are gone ──► delete it ──► the next
//	                                                          └─ they do not go in time: deleted if forced, else stuck
//
// At all times
//   - no more machines are drained and going than may be unavailable, those that are repaired included,
//   - no machine that is Ready is drained if fewer than desired would be Ready without it; by a minimal policy fewer
//     than desired without those that may be unavailable. Machines that are stopped, and stay, are not to be Ready,
//   - the group has no more machines than desired and the additional ones, those that go included.
//
// There are never more additional machines than outdated ones, so that the last ones to go bring the group to its size,
// and no pod has to move twice.
func Rollout(desired int, machines []Machine, phase Phase, policy Policy) Step {
	group := survey(machines)
	if desired <= 0 || len(group.outdated) == 0 && (phase != Upgrade || group.leaving == 0) {
		return Step{Phase: ScaleDown, Size: max(desired, 0), Outdated: len(group.outdated)}
	}
	surge, unavailable := policy.surge(desired, len(group.outdated)), policy.Unavailable(desired)
	most, least := desired+surge, desired-group.stopped
	if policy.Minimal {
		least -= unavailable
	}
	step := Step{Phase: Upgrade, Outdated: len(group.outdated), Size: min(max(group.counted, most-group.leaving), most)}
	if phase != Upgrade && surge > 0 && (group.counted < most || group.waiting > 0) {
		step.Phase = ScaleUp
		return step
	}
	step.Actions, step.Stuck = group.replace(least, unavailable, policy.Force)
	return step
}

// replace chooses machines to drain and to delete, so that no more than unavailable are drained and going at once, and
// at least so many as least are Ready.
func (s surveyed) replace(least, unavailable int, force bool) (actions []Action, stuck string) {
	busy, serving := s.leaving+s.draining, s.serving
	for _, m := range s.outdated {
		switch {
		case m.Repairing: // its reboot ends first
		case m.Draining && m.Drained:
			actions = append(actions, Action{Delete: m.Name, Reason: "its pods are gone"})
		case m.Draining && m.TimedOut && force:
			actions = append(actions, Action{Delete: m.Name, Reason: "its pods did not go in time, and the rollout is forced"})
		case m.Draining && m.TimedOut:
			stuck = m.Name
		case m.Draining:
			actions = append(actions, Action{Drain: m.Name, Reason: "its pods are not gone yet"})
		case m.Drains: // until it has forgotten that, it would seem to be drained, or to have waited for long enough
		case busy < unavailable && !m.Ready:
			busy++
			actions = append(actions, Action{Drain: m.Name, Reason: fmt.Sprintf("it is not Ready, and the first of %d to be replaced", len(s.outdated))})
		case busy < unavailable && serving > least:
			busy, serving = busy+1, serving-1
			actions = append(actions, Action{Drain: m.Name, Reason: fmt.Sprintf("without it %d machines are Ready, and %d have to be", serving, max(least, 0))})
		}
	}
	return actions, stuck
}

// surveyed is what a rollout has to know of all machines of a group together.
type surveyed struct {
	outdated []Machine // the first to be replaced first
	counted  int       // all that are not going
	waiting  int       // new machines that are not Ready yet
	serving  int       // machines that are Ready, and not drained
	stopped  int       // machines that do not run, as they are to, and stay
	draining int
	leaving  int
}

func survey(machines []Machine) surveyed {
	var s surveyed
	for _, m := range machines {
		if m.Deleting {
			s.leaving++
			continue
		}
		s.counted++
		if m.Outdated {
			s.outdated = append(s.outdated, m)
		}
		switch {
		case m.Repairing, m.Outdated && (m.Draining || m.Drains):
			s.draining++
		case m.Ready:
			s.serving++
		case !m.Outdated && m.Stopped:
			s.stopped++
		case !m.Outdated:
			s.waiting++
		}
	}
	slices.SortFunc(s.outdated, func(a, b Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return s
}
