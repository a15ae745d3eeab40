// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"slices"
)

// replacing is the reason of the event with which a replacement begins.
const replacing = "Requested update requires the creation of a new physical resource; hence creating one."

// forward brings a creation or update forward.
func (p *planner) forward() bool {
	for !p.lost() && p.beginReady() {
		continue // a resource that needs no change makes others ready
	}
	if p.lost() {
		return p.giveUp()
	}
	if p.busy() || slices.ContainsFunc(p.Graph.ids(), func(id string) bool { return p.at(id) < 0 || !p.Resources[p.at(id)].Done }) {
		return false
	}
	for i := range p.Resources {
		r := &p.Resources[i]
		if _, asked := p.Graph[r.LogicalID]; !asked && r.current() {
			r.Superseded = true
		}
	}
	p.settle()
	if p.Status == CreateInProgress {
		return p.move(CreateComplete, "")
	}
	return p.move(UpdateCleanup, "")
}

// lost reports whether a resource has failed.
func (p *planner) lost() bool {
	return slices.ContainsFunc(p.Resources, func(r Resource) bool { return r.current() && r.Done && r.failed() })
}

// beginReady begins all resources whose needs are there, and reports whether that may have made others ready.
func (p *planner) beginReady() bool {
	again := false
	for _, id := range p.Graph.ids() {
		at := p.at(id)
		if at >= 0 && (p.Resources[at].Done || p.Resources[at].Work != "") || !p.ready(p.Graph[id].Needs) {
			continue
		}
		if p.begin(id, at) {
			again = true
		}
	}
	return again
}

// begin brings one resource to what the template asks for, and reports whether that is done at once. The place of the
// resource is -1 if the stack does not have it.
func (p *planner) begin(id string, at int) (done bool) {
	node := p.Graph[id]
	if at < 0 {
		wanted, err := p.judge(p.State, id, nil)
		p.make(id, CreateInProgress, "", p.definition(node, wanted.Properties))
		if err != nil {
			p.unresolved(&p.Resources[len(p.Resources)-1], CreateFailed, err)
		}
		return err != nil
	}
	had := p.Resources[at]
	wanted, err := p.judge(p.State, id, &had)
	if err != nil {
		p.unresolved(&p.Resources[at], UpdateFailed, err)
		return true
	}
	asked := p.definition(node, wanted.Properties)
	r := &p.Resources[at]
	r.Was = &had.Definition
	switch wanted.Change {
	case InPlace:
		r.Definition, r.Touched, r.Work = asked, true, Updating
		r.Refers = union(r.Refers, asked.On)
		p.tell(r, UpdateInProgress, "")
		return false
	case Replace:
		r.DeletionPolicy, r.Superseded, r.Done = node.ReplacePolicy, true, true
		p.make(id, UpdateInProgress, replacing, asked)
		return false
	default:
		r.Definition, r.Done, r.Refers = asked, true, union(nil, asked.On)
		return true
	}
}

// make begins the creation of a resource.
func (p *planner) make(id string, status Status, reason string, d Definition) {
	p.Serial++
	p.Resources = append(p.Resources, Resource{
		LogicalID: id, Type: p.Graph[id].Type, Serial: p.Serial, Definition: d, Refers: union(nil, d.On), Work: Creating, New: true,
	})
	p.tell(&p.Resources[len(p.Resources)-1], status, reason)
}

// unresolved fails a resource whose properties cannot be resolved.
func (p *planner) unresolved(r *Resource, status Status, err error) {
	r.Work, r.Done = "", true
	p.tell(r, status, err.Error())
}

// giveUp ends a creation or update in which a resource has failed, once nothing is under way. A creation whose physical id
// is known is not waited for: the rollback deletes it.
func (p *planner) giveUp() bool {
	p.cancel()
	if p.busy() {
		return false
	}
	why := p.named("create", func(r Resource) bool { return r.current() && r.Status == CreateFailed }) +
		p.named("update", func(r Resource) bool { return r.current() && r.Status == UpdateFailed })
	if p.Status == UpdateInProgress {
		if p.OnFailure == DoNothing {
			return p.move(UpdateFailed, why)
		}
		return p.move(UpdateRollbackInProgress, why)
	}
	switch p.OnFailure {
	case DoNothing:
		return p.move(CreateFailed, why)
	case Delete:
		return p.move(DeleteInProgress, why+"Delete requested by user.")
	default:
		return p.move(RollbackInProgress, why+"Rollback requested by user.")
	}
}

// cancel ends creations whose physical ids are known.
func (p *planner) cancel() {
	for i := range p.Resources {
		r := &p.Resources[i]
		if r.Work != Creating || r.PhysicalID == "" {
			continue
		}
		r.Work, r.Done = "", true
		words := "Resource creation cancelled"
		if r.Status == UpdateInProgress {
			words = "Resource update cancelled"
		}
		p.tell(r, r.Status.failed(), words)
	}
}

// union is the sorted union of two sets of serials.
func union(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.SortFunc(all, cmp.Compare[int])
	return slices.Compact(all)
}
