// SPDX-License-Identifier: Apache-2.0

package stack

import "slices"

// Outcome is what came of a call.
type Outcome struct {
	Serial int
	Work   Work
	Result Result
	// PhysicalID of a creation, as soon as it is known. A creation that failed without it has made nothing. Of an update, the one that
	// the resource has after it; empty if it is the same.
	PhysicalID string
	// Attributes of the resource, for Fn::GetAtt; nil leaves those that are known.
	Attributes map[string]any
	// Reason of a failure, or why the same call has to be made again; empty if it only takes time.
	Reason string
}

// Result is how far a call is.
type Result uint8

// The results.
const (
	Pending Result = iota // the same call has to be made again
	Succeeded
	Failed
)

// initiated is the reason of the event that has the physical id of a resource for the first time.
const initiated = "Resource creation Initiated"

// Record returns the state after an outcome, and its events. An outcome of something that is not being done any more
// changes nothing.
func Record(s State, o Outcome) (State, []Event) {
	at := slices.IndexFunc(s.Resources, func(r Resource) bool { return r.Serial == o.Serial && r.Work == o.Work })
	if at < 0 || o.Work == "" {
		return s, nil
	}
	s = s.clone()
	r := &s.Resources[at]
	var events []Event
	if o.Work == Creating && r.PhysicalID == "" && o.PhysicalID != "" {
		r.PhysicalID = o.PhysicalID
		events = append(events, r.tell(r.Status, initiated))
	}
	if (o.Work == Updating || o.Work == Restoring) && o.PhysicalID != "" {
		r.PhysicalID = o.PhysicalID
	}
	if o.Attributes != nil {
		r.Attributes = o.Attributes
	}
	if o.Result == Pending {
		r.Reason = o.Reason // no event: the status is the same
		return s, events
	}
	// A creation that ends while the stack is being deleted leaves a resource to be deleted.
	r.Work, r.Done = "", o.Work != Creating || s.Status == CreateInProgress || s.Status == UpdateInProgress
	switch {
	case o.Work == Deleting && o.Result == Failed:
		events = append(events, r.tell(DeleteFailed, o.Reason))
	case o.Work == Deleting:
		events = append(events, r.tell(DeleteComplete, ""))
	case o.Result == Failed:
		events = append(events, r.tell(r.Status.failed(), o.Reason))
	default:
		if o.Work == Restoring {
			r.Touched = false
		}
		r.Refers = union(nil, r.On)
		events = append(events, r.tell(r.Status.complete(), ""))
	}
	return s, events
}
