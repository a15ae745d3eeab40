// SPDX-License-Identifier: Apache-2.0

package stack

import "slices"

// Judge resolves the properties that the template asks of a resource. For a resource that the stack has, which is had, it
// also says what has to be done to it; had is nil for a resource to be created. The needs of the resource are there. An
// error, such as one about an attribute that the needed resource does not have, is the reason why the resource fails.
type Judge func(s State, logicalID string, had *Resource) (Wanted, error)

// Wanted is the answer of a Judge.
type Wanted struct {
	Properties map[string]any
	Change     Change
}

// Plan is what is next of a stack.
type Plan struct {
	// State has to be written before the calls are made.
	State  State
	Events []Event
	// Calls are made at the same time or one after the other, in any order. Nothing is under way without a call.
	Calls []Call
}

// Call is something to be done to one resource. It is made again until an outcome other than Pending is recorded.
type Call struct {
	Work     Work
	Resource Resource
}

// planner gathers events while it brings a state forward.
type planner struct {
	State
	judge  Judge
	events []Event
}

// Next decides what is next. It changes nothing that the state it was given refers to, and decides the same each time:
// for the state that it returned it returns the same calls, and no events.
func Next(s State, judge Judge) Plan {
	p := &planner{State: s.clone(), judge: judge}
	for p.step() {
		continue // in the next phase
	}
	plan := Plan{State: p.State, Events: p.events}
	for _, r := range p.Resources {
		if r.Work != "" {
			plan.Calls = append(plan.Calls, Call{Work: r.Work, Resource: r})
		}
	}
	return plan
}

// step brings the phase forward, and reports whether the stack has entered another one.
func (p *planner) step() bool {
	switch p.Status { //nolint:exhaustive // nothing is under way in the others
	case CreateInProgress, UpdateInProgress:
		return p.forward()
	case UpdateRollbackInProgress:
		return p.restore()
	case RollbackInProgress, DeleteInProgress, UpdateCleanup, UpdateRollbackCleanup:
		return p.remove()
	}
	return false
}

// move enters another phase.
func (p *planner) move(to Status, reason string) bool {
	p.events = append(p.events, p.enter(to, reason)...)
	return true
}

// tell changes the status of a resource.
func (p *planner) tell(r *Resource, status Status, reason string) {
	p.events = append(p.events, r.tell(status, reason))
}

// tell changes the status, and returns the event of it.
func (r *Resource) tell(status Status, reason string) Event {
	r.Status, r.Reason = status, reason
	return Event{LogicalID: r.LogicalID, Type: r.Type, PhysicalID: r.PhysicalID, Status: status, Reason: reason}
}

// busy reports whether something is being done to a resource.
func (p *planner) busy() bool {
	return slices.ContainsFunc(p.Resources, func(r Resource) bool { return r.Work != "" })
}

// ready reports whether the needs are there, and this phase is over with them.
func (p *planner) ready(needs []string) bool {
	for _, need := range needs {
		at := p.at(need)
		if at < 0 || !p.Resources[at].Done || p.Resources[at].failed() {
			return false
		}
	}
	return true
}

// failed reports whether the last thing that was done to the resource failed.
func (r Resource) failed() bool { return r.Status == CreateFailed || r.Status == UpdateFailed }
