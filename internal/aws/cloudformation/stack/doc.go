// SPDX-License-Identifier: Apache-2.0

// Package stack decides what is next of a CloudFormation stack: which resources are created, updated, replaced and deleted,
// in which order, and what a failure leads to. It is pure: [Next] takes the state of a stack, and returns the state to be
// written, the events, and the calls that are made once the state is written.
//
//	Create   CREATE_IN_PROGRESS ─► CREATE_COMPLETE
//	              │ failure
//	              ├─► ROLLBACK_IN_PROGRESS ─► ROLLBACK_COMPLETE | ROLLBACK_FAILED
//	              ├─► CREATE_FAILED                   OnFailure: DO_NOTHING
//	              └─► DELETE_IN_PROGRESS ─► …         OnFailure: DELETE
//	Update   UPDATE_IN_PROGRESS ─► UPDATE_COMPLETE_CLEANUP_IN_PROGRESS ─► UPDATE_COMPLETE
//	              │ failure
//	              ├─► UPDATE_ROLLBACK_IN_PROGRESS ─► UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS ─► UPDATE_ROLLBACK_COMPLETE
//	              │         └─► UPDATE_ROLLBACK_FAILED
//	              └─► UPDATE_FAILED                   OnFailure: DO_NOTHING
//	Delete   DELETE_IN_PROGRESS ─► DELETE_COMPLETE | DELETE_FAILED
//
// Statuses, events and their reasons are those of CloudFormation. A resource is created once all resources that its
// properties refer to are there, and deleted once no resource that refers to it is there; resources that do not refer to each
// other are worked on at the same time. A replaced or removed resource is deleted after the update has succeeded, so that
// a rollback restores it.
//
// What happens if
//
//	the process ends before a state is written     Next decides the same from the state before
//	it ends after that, or before an answer        the calls of the state are made again; a creation has the same token
//	a creation fails while others are under way    those whose physical id is known are cancelled and deleted; the others are asked for theirs first
//	an update fails while others are under way     the rollback begins when these have ended
//	a resource cannot be deleted                   resources that it refers to stay, all others are deleted; the next Delete tries again
//	a replaced resource cannot be deleted          the update is complete; the next update and Delete try again
package stack
