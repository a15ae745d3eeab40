// SPDX-License-Identifier: Apache-2.0

package stack

import "slices"

// notAllDeleted is the reason of a complete update whose cleanup was not.
const notAllDeleted = "Update successful. One or more resources could not be deleted."

// remove brings a deletion, the rollback of a creation, or a cleanup forward.
func (p *planner) remove() bool {
	p.letGo()
	p.beginDeleting()
	if slices.ContainsFunc(p.Resources, func(r Resource) bool { return r.Work != "" }) {
		return false
	}
	left := p.named("delete", func(r Resource) bool { return p.goes(r) && r.Status == DeleteFailed })
	whole := !slices.ContainsFunc(p.Resources, p.goes)
	switch p.Status { //nolint:exhaustive // the others remove nothing
	case RollbackInProgress:
		return p.move(ended(whole, RollbackComplete, RollbackFailed), left)
	case DeleteInProgress:
		return p.move(ended(whole, DeleteComplete, DeleteFailed), left)
	}
	rolledBack := p.Status == UpdateRollbackCleanup
	p.Resources = slices.DeleteFunc(p.Resources, Resource.Gone)
	switch {
	case rolledBack:
		return p.move(UpdateRollbackComplete, left)
	case whole:
		return p.move(UpdateComplete, "")
	default:
		return p.move(UpdateComplete, notAllDeleted)
	}
}

func ended(whole bool, complete, failed Status) Status {
	if whole {
		return complete
	}
	return failed
}

// goes reports whether the phase removes a resource that is there: a cleanup removes those that were superseded.
func (p *planner) goes(r Resource) bool {
	cleanup := p.Status == UpdateCleanup || p.Status == UpdateRollbackCleanup
	return !r.Gone() && (r.Superseded || !cleanup)
}

// letGo ends resources that need no call because they were never made or are retained.
func (p *planner) letGo() {
	for i := range p.Resources {
		r := &p.Resources[i]
		if r.Work == Creating && r.PhysicalID != "" {
			r.Work = ""
		}
		if !p.goes(*r) || r.Work != "" || r.Done {
			continue
		}
		switch {
		case r.PhysicalID == "":
			p.tell(r, DeleteComplete, "")
		case p.retains(*r):
			p.tell(r, DeleteSkipped, "")
		}
	}
}

// retains reports whether a resource stays when its stack does not have it any more.
func (p *planner) retains(r Resource) bool {
	return slices.Contains(p.Retain, r.LogicalID) || r.DeletionPolicy == Retain || r.DeletionPolicy == RetainExceptOnCreate && !r.New
}

// beginDeleting deletes all resources that no other refers to.
func (p *planner) beginDeleting() {
	for i := range p.Resources {
		r := &p.Resources[i]
		if !p.goes(*r) || r.Work != "" || r.Done || p.needed(r.Serial) {
			continue
		}
		r.Work = Deleting
		p.tell(r, DeleteInProgress, "")
	}
}

// needed reports whether a resource that is there may refer to the one with a serial.
func (p *planner) needed(serial int) bool {
	return slices.ContainsFunc(p.Resources, func(r Resource) bool { return !r.Gone() && slices.Contains(r.Refers, serial) })
}
