// SPDX-License-Identifier: Apache-2.0

package stack

import "slices"

// restore brings the rollback of an update forward: each logical id stands for the resource that it stood for before the
// update, with the properties of then. The cleanup after it removes the resources that the update has made.
func (p *planner) restore() bool {
	p.turnBack()
	for p.beginRestoring() {
		continue // a resource that needs no update makes others ready
	}
	if p.busy() {
		return false
	}
	left := func(r Resource) bool { return r.current() && (!r.Done || r.failed()) }
	if slices.ContainsFunc(p.Resources, left) {
		return p.move(UpdateRollbackFailed, p.named("update", func(r Resource) bool { return r.current() && r.failed() }))
	}
	return p.move(UpdateRollbackCleanup, "")
}

// turnBack undoes replacements: the resources that the update has made give way to those before.
func (p *planner) turnBack() {
	for i := range p.Resources {
		if r := &p.Resources[i]; r.New {
			r.Superseded, r.Done = true, true
			if r.DeletionPolicy == RetainExceptOnCreate { // its creation is rolled back, whenever it is deleted
				r.DeletionPolicy = ""
			}
		}
	}
	for i := range p.Resources {
		r := &p.Resources[i]
		if r.New || !r.Superseded || r.Was == nil {
			continue
		}
		r.Definition, r.Was, r.Superseded, r.Done = *r.Was, nil, false, true
		p.tell(r, UpdateComplete, "")
	}
}

// beginRestoring restores all resources whose needs are restored, and reports whether that may have made others ready.
func (p *planner) beginRestoring() bool {
	again := false
	for i := range p.Resources {
		r := &p.Resources[i]
		if !r.current() || r.Done || r.Work != "" {
			continue
		}
		before := r.Definition
		if r.Was != nil {
			before = *r.Was
		}
		if r.Touched && !p.ready(before.Needs) {
			continue
		}
		if tried := r.Definition; r.Touched && r.Tried == nil {
			r.Tried = &tried
		}
		r.Definition, r.Was, r.Refers = before, nil, union(r.Refers, before.On)
		if r.Touched {
			r.Work = Restoring
			p.tell(r, UpdateInProgress, "")
			continue
		}
		r.Refers, r.Done, again = union(nil, before.On), true, true
		if r.failed() { // its properties could not be resolved, and nothing was done to it
			p.tell(r, UpdateComplete, "")
		}
	}
	return again
}
