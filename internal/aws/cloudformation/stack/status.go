// SPDX-License-Identifier: Apache-2.0

package stack

import "strings"

// Status is the status of a stack or of a resource, as CloudFormation's API names it.
type Status string

// The statuses. Rollbacks and cleanups are of stacks alone, DeleteSkipped is of resources alone.
const (
	CreateInProgress         Status = "CREATE_IN_PROGRESS"
	CreateComplete           Status = "CREATE_COMPLETE"
	CreateFailed             Status = "CREATE_FAILED"
	RollbackInProgress       Status = "ROLLBACK_IN_PROGRESS"
	RollbackComplete         Status = "ROLLBACK_COMPLETE"
	RollbackFailed           Status = "ROLLBACK_FAILED"
	DeleteInProgress         Status = "DELETE_IN_PROGRESS"
	DeleteComplete           Status = "DELETE_COMPLETE"
	DeleteFailed             Status = "DELETE_FAILED"
	DeleteSkipped            Status = "DELETE_SKIPPED"
	UpdateInProgress         Status = "UPDATE_IN_PROGRESS"
	UpdateCleanup            Status = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
	UpdateComplete           Status = "UPDATE_COMPLETE"
	UpdateFailed             Status = "UPDATE_FAILED"
	UpdateRollbackInProgress Status = "UPDATE_ROLLBACK_IN_PROGRESS"
	UpdateRollbackCleanup    Status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
	UpdateRollbackComplete   Status = "UPDATE_ROLLBACK_COMPLETE"
	UpdateRollbackFailed     Status = "UPDATE_ROLLBACK_FAILED"
	// Review is the status of a stack that a change set has made, and that has nothing yet.
	Review Status = "REVIEW_IN_PROGRESS"
)

// InProgress reports whether an operation is under way.
func (s Status) InProgress() bool { return s != Review && strings.HasSuffix(string(s), "_IN_PROGRESS") }

// Updatable reports whether a stack of this status can be updated.
func (s Status) Updatable() bool {
	return s == CreateComplete || s == UpdateComplete || s == UpdateRollbackComplete
}

// Deletable reports whether a stack of this status can be deleted: an update under way has to end first.
func (s Status) Deletable() bool {
	return s != UpdateInProgress && s != UpdateCleanup && s != UpdateRollbackInProgress && s != UpdateRollbackCleanup
}

// failed is the status of a resource whose creation or update failed.
func (s Status) failed() Status {
	if s == UpdateInProgress {
		return UpdateFailed
	}
	return CreateFailed
}

// complete is the status of a resource whose creation or update succeeded.
func (s Status) complete() Status {
	if s == UpdateInProgress {
		return UpdateComplete
	}
	return CreateComplete
}

// OnFailure says what follows the failure of a creation or an update.
type OnFailure string

// The consequences. DisableRollback is DoNothing.
const (
	Rollback  OnFailure = "ROLLBACK"
	DoNothing OnFailure = "DO_NOTHING"
	Delete    OnFailure = "DELETE" // of a creation alone
)

// Policy is the DeletionPolicy or UpdateReplacePolicy of a resource.
type Policy string

// The policies. The empty one deletes.
const (
	Retain Policy = "Retain"
	// RetainExceptOnCreate retains a resource unless the operation that created it is rolled back.
	RetainExceptOnCreate Policy = "RetainExceptOnCreate"
)

// Change is what an update does to a resource.
type Change uint8

// The changes.
const (
	None    Change = iota
	InPlace        // the physical resource is updated
	Replace        // a property changes that cannot be updated: another physical resource takes its place
)

// Work is what is being done to a resource.
type Work string

// The works. The empty one is that nothing is being done.
const (
	Creating  Work = "Create"
	Updating  Work = "Update"
	Restoring Work = "Restore" // an update to the properties before the update that is rolled back
	Deleting  Work = "Delete"
)
