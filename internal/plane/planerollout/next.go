// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/release"
)

const (
	// patience is how long a newcomer may take to become Ready while another server serves. On an idle host it takes some
	// seconds.
	patience = 3 * time.Minute
	// maxEnds is how many times a newcomer may end before it is Ready.
	maxEnds = 3
	// NewcomerMemory is what the host must have for a newcomer beside the servers that serve, in bytes. Until it was Ready,
	// with Kubernetes v1.36.3 and one node, 312 MiB were resident: 211 MiB of its own, and pages of the program, which
	// servers share.
	NewcomerMemory int64 = 400 << 20
)

// Phase is what an API server is for.
type Phase string

// The phases; the package comment draws how one follows another.
const (
	Newcomer Phase = "Newcomer"
	Serving  Phase = "Serving"
	Draining Phase = "Draining"
)

// Server is an API server of a plane.
type Server struct {
	Slot  int   `json:"slot"`
	Phase Phase `json:"phase"`
	// Spec that it was started with, and is started with again.
	Spec component.Spec `json:"spec"`
	// Since is when it came into its phase.
	Since time.Time `json:"since"`
	// Outdated says that the file of its program was replaced since it was started. Each service finds out anew.
	Outdated bool `json:"-"`
}

// Record is what a plane is made of at a moment, but for the components that are changed in place. It has secrets.
type Record struct {
	Servers   []Server         `json:"servers"`
	Followers []component.Spec `json:"followers"`
	// Before are the followers as they were before a rollback, until a server that is older than they are serves.
	Before []component.Spec `json:"before,omitempty"`
	// Move is how the plane came to its minor; nil if it has always had it.
	Move *Move `json:"move,omitempty"`
}

// Wanted is what a plane is to be made of.
type Wanted struct {
	// Servers has the API server of each slot.
	Servers []component.Spec
	// Replicas is how many of them are to serve. There is a slot more, for a newcomer.
	Replicas int
	// Followers are the components that are not to be newer than any API server.
	Followers []component.Spec
}

// current reports whether a server has the spec and the program that are wanted.
func (w Wanted) current(s Server) bool {
	return !s.Outdated && s.Spec.Hash() == w.Servers[s.Slot].Hash()
}

// alone reports whether every server is current and goes on: then followers may be as new as is wanted.
func (w Wanted) alone(servers []Server) bool {
	return !slices.ContainsFunc(servers, func(s Server) bool { return s.Phase == Draining || !w.current(s) })
}

// met reports whether as many servers serve as are wanted, or more, and all of them are current.
func (w Wanted) met(servers []Server) bool {
	return count(servers, Serving) >= w.Replicas && !slices.ContainsFunc(servers, func(s Server) bool { return s.Phase == Serving && !w.current(s) })
}

// Done reports whether no server follows, whatever becomes of those of a record.
func (w Wanted) Done(is Record, refused bool) bool {
	serving := count(is.Servers, Serving)
	return serving == len(is.Servers) && serving > 0 && serving <= w.Replicas && (refused || w.met(is.Servers))
}

// free is the first slot that no server is in.
func (w Wanted) free(servers []Server) int {
	for slot := range w.Servers {
		if !slices.ContainsFunc(servers, func(s Server) bool { return s.Slot == slot }) {
			return slot
		}
	}
	return -1
}

// Facts are what Next decides by.
type Facts struct {
	// Statuses are the runner's.
	Statuses []runner.Status
	// Refused says that what is wanted was refused before.
	Refused bool
	// Room is how many bytes of memory new programs can have; not known if negative.
	Room int64
	Now  time.Time
}

// Next returns what follows a record that has been carried out; the same record if nothing does for now. A reason says
// that what is wanted is refused now, and why.
func Next(is Record, wanted Wanted, facts Facts) (next Record, reason string) {
	next = is
	next.Servers = without(is.Servers, Draining) // servers that drained have ended
	serving := count(next.Servers, Serving)
	newcomer := slices.IndexFunc(next.Servers, func(s Server) bool { return s.Phase == Newcomer })
	switch {
	case newcomer < 0 && serving > wanted.Replicas && wanted.drain(next.Servers, facts):
	case newcomer < 0 && (serving == 0 || !facts.Refused && !wanted.met(next.Servers)):
		next.Servers, reason = wanted.begin(next.Servers, facts)
	case newcomer < 0: // nothing is to change
	default:
		reason = wanted.take(&next, newcomer, serving, facts)
	}
	if len(next.Followers) == 0 || wanted.alone(next.Servers) {
		next.Followers, next.Before = wanted.Followers, nil
	}
	next.Move = is.Move.moved(is.Servers, next.Servers, facts.Now)
	return next, reason
}

// take decides about the newcomer of a record, which is one of its servers. A reason says that it is given up.
func (w Wanted) take(next *Record, newcomer, serving int, facts Facts) (reason string) {
	s := &next.Servers[newcomer]
	ready := facts.of(s.Spec).State == runner.Ready
	switch {
	case w.met(next.Servers):
		next.Servers = without(next.Servers, Newcomer)
	case !w.current(*s):
		s.Spec, s.Since = w.Servers[s.Slot], facts.Now
	case ready && newer(next.Followers, s.Spec):
		next.Before, next.Followers, s.Since = next.Followers, w.Followers, facts.Now // followers have time of their own
	case ready && (next.Before == nil || facts.ready(next.Followers)):
		s.Phase, s.Since, next.Before = Serving, facts.Now, nil
		if serving >= w.Replicas {
			w.drain(next.Servers, facts)
		}
	case serving > 0:
		if reason = facts.hopeless(*s, next.Followers, next.Before != nil); reason == "" {
			return ""
		}
		next.Servers = without(next.Servers, Newcomer)
		if next.Before != nil {
			next.Followers, next.Before = next.Before, nil
		}
	}
	return reason
}

// begin adds a newcomer to servers, unless the reason says that there is no memory for one.
func (w Wanted) begin(servers []Server, facts Facts) (with []Server, reason string) {
	if reason := facts.narrow(); len(servers) > 0 && reason != "" {
		return servers, reason
	}
	if slot := w.free(servers); slot >= 0 {
		servers = append(servers, Server{Slot: slot, Phase: Newcomer, Spec: w.Servers[slot], Since: facts.Now})
	}
	return servers, ""
}

// drain has a server drain beside which another one is Ready: rather one that is not current, then one that is not Ready,
// then the last one. It reports whether there was such a server.
func (w Wanted) drain(servers []Server, facts Facts) bool {
	ready := func(s Server) bool { return s.Phase == Serving && facts.of(s.Spec).State == runner.Ready }
	worth := func(s Server) int {
		switch {
		case !w.current(s) && !ready(s):
			return 0
		case !w.current(s):
			return 1
		case !ready(s):
			return 2
		}
		return 3
	}
	chosen := -1
	for i, s := range servers {
		beside := slices.ContainsFunc(servers, func(other Server) bool { return other.Slot != s.Slot && ready(other) })
		if s.Phase == Serving && beside && (chosen < 0 || worth(s) < worth(servers[chosen]) || worth(s) == worth(servers[chosen]) && s.Slot > servers[chosen].Slot) {
			chosen = i
		}
	}
	if chosen >= 0 {
		servers[chosen].Phase, servers[chosen].Since = Draining, facts.Now
	}
	return chosen >= 0
}

// count is how many servers are in a phase.
func count(servers []Server, phase Phase) int { return len(servers) - len(without(servers, phase)) }

// without returns the servers that are in another phase, which the caller may change.
func without(servers []Server, phase Phase) []Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s Server) bool { return s.Phase == phase })
}

// of is the status of a component; empty if it has none.
func (f Facts) of(spec component.Spec) runner.Status {
	for _, status := range f.Statuses {
		if status.Name == spec.Name {
			return status
		}
	}
	return runner.Status{}
}

// ready reports whether all components of a list are Ready.
func (f Facts) ready(specs []component.Spec) bool {
	return !slices.ContainsFunc(specs, func(spec component.Spec) bool { return f.of(spec).State != runner.Ready })
}

// hopeless says why a newcomer is given up, or "": because of itself, or of followers that were taken back for it.
func (f Facts) hopeless(s Server, followers []component.Spec, back bool) string {
	if reason := f.stuck(s.Spec, s.Since); reason != "" {
		return reason
	}
	for _, spec := range followers {
		if reason := f.stuck(spec, s.Since); back && reason != "" {
			return fmt.Sprintf("%s of %s did not serve: %s", spec.Name, releaseOf(spec, release.All()).Minor(), reason)
		}
	}
	return ""
}

// stuck says why a component will not become Ready that others wait for since a moment, or "".
func (f Facts) stuck(spec component.Spec, since time.Time) string {
	status := f.of(spec)
	switch {
	case status.State == runner.Backoff && status.Restarts >= maxEnds:
		return fmt.Sprintf("it ended %d times: %s", status.Restarts, status.Message)
	case status.State != runner.Ready && f.Now.Sub(since) > patience:
		return fmt.Sprintf("it was not Ready within %s: %s", patience, status.Message)
	}
	return ""
}

// narrow says why a newcomer is not started beside servers that serve, or "".
func (f Facts) narrow() string {
	if f.Room < 0 || f.Room >= NewcomerMemory {
		return ""
	}
	return fmt.Sprintf("it was not started: the host has %d MiB of memory available, and one more API server needs %d MiB while it takes over: "+
		"stop other programs, or use a host with more memory", f.Room>>20, NewcomerMemory>>20)
}
