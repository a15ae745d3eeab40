// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"slices"
	"strings"
)

// ByUser is the reason of the first event of an operation.
const ByUser = "User Initiated"

// StatusError refuses an operation that a stack of this status does not take.
type StatusError struct {
	Status    Status
	Operation string // such as updated
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the stack is in %s state and can not be %s", e.Status, e.Operation)
}

// Create begins a stack.
func Create(g Graph, f OnFailure) (State, []Event) {
	s := State{Graph: g, OnFailure: f}
	return s, s.enter(CreateInProgress, ByUser)
}

// Update begins the update of a stack to another graph. On failure it is rolled back unless f is DoNothing. The error is a
// *StatusError, or names the resources whose type changes.
func (s State) Update(g Graph, f OnFailure) (State, []Event, error) {
	if !s.Status.Updatable() {
		return s, nil, &StatusError{Status: s.Status, Operation: "updated"}
	}
	var retyped []string
	for _, id := range g.ids() {
		if had, ok := s.Current(id); ok && had.Type != g[id].Type {
			retyped = append(retyped, id)
		}
	}
	if len(retyped) > 0 {
		return s, nil, fmt.Errorf("update of resource type is not permitted. The new template modifies resource type of the following resources: [%s]", strings.Join(retyped, ", "))
	}
	s = s.clone()
	s.Resources = slices.DeleteFunc(s.Resources, Resource.Gone)
	s.settle()
	s.Graph, s.OnFailure, s.Retain = g, f, nil
	return s, s.enter(UpdateInProgress, ByUser), nil
}

// Delete begins the deletion of a stack, and leaves a stack alone that is being deleted. Resources can be retained by their
// logical ids where a deletion has failed, and nowhere else.
func (s State) Delete(retain []string) (State, []Event, error) {
	switch {
	case s.Status == DeleteInProgress || s.Status == DeleteComplete:
		return s, nil, nil
	case !s.Status.Deletable():
		return s, nil, &StatusError{Status: s.Status, Operation: "deleted"}
	case len(retain) > 0 && s.Status != DeleteFailed:
		return s, nil, &StatusError{Status: s.Status, Operation: "deleted with RetainResources, which a stack in DELETE_FAILED state takes"}
	}
	s = s.clone()
	if s.Status != RollbackInProgress && s.Status != RollbackFailed { // whose resources go on to be those that a failed creation has made
		s.settle()
	}
	s.Retain = slices.Clone(retain)
	return s, s.enter(DeleteInProgress, ByUser), nil
}

// RollBack begins the rollback of a creation or update that failed and was left as it was, and goes on with a rollback of
// an update that failed.
func (s State) RollBack() (State, []Event, error) {
	to := UpdateRollbackInProgress
	switch s.Status {
	case CreateFailed:
		to = RollbackInProgress
	case UpdateFailed, UpdateRollbackFailed:
	default:
		return s, nil, &StatusError{Status: s.Status, Operation: "rolled back"}
	}
	s = s.clone()
	return s, s.enter(to, ByUser), nil
}

// settle forgets what only an operation that is over has to know.
func (s *State) settle() {
	for i := range s.Resources {
		r := &s.Resources[i]
		r.Was, r.Tried, r.New, r.Touched = nil, nil, false, false
	}
}

// enter begins a phase, in which everything is to be looked at again.
func (s *State) enter(to Status, reason string) []Event {
	s.Status, s.Reason = to, reason
	for i := range s.Resources {
		s.Resources[i].Done = false
	}
	return []Event{{Status: to, Reason: reason}}
}

// Fail ends a creation or update as its OnFailure says, for a reason that is not a resource, such as an output that cannot be
// evaluated. The state is the one before the plan that completes the operation, so that a rollback still knows what was before.
func (s State) Fail(reason string) (State, []Event) {
	to := RollbackInProgress
	switch {
	case s.Status == UpdateInProgress && s.OnFailure == DoNothing:
		to = UpdateFailed
	case s.Status == UpdateInProgress:
		to = UpdateRollbackInProgress
	case s.OnFailure == DoNothing:
		to = CreateFailed
	case s.OnFailure == Delete:
		to = DeleteInProgress
	}
	s = s.clone()
	return s, s.enter(to, reason)
}
