// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

const (
	// patience is how long a newcomer may take to become Ready while another server serves. On an idle host it takes some
	// seconds.
	patience = 3 * time.Minute
	// maxEnds is how many times a newcomer may end before it is Ready.
	maxEnds = 3
	// newcomerMemory is what the host must have for a newcomer beside the servers that serve, in bytes. Until it was Ready,
	// with Kubernetes v1.36.3 and one node, 312 MiB were resident: 211 MiB of its own, and pages of the program, which
	// servers share.
	newcomerMemory int64 = 400 << 20
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
	next = Record{Servers: without(is.Servers, Draining), Followers: is.Followers} // servers that drained have ended
	serving := count(next.Servers, Serving)
	newcomer := slices.IndexFunc(next.Servers, func(s Server) bool { return s.Phase == Newcomer })
	switch {
	case newcomer < 0 && serving > wanted.Replicas && wanted.drain(next.Servers, facts):
	case newcomer < 0 && (serving == 0 || !facts.Refused && !wanted.met(next.Servers)):
		next.Servers, reason = wanted.begin(next.Servers, facts)
	case newcomer < 0: // nothing is to change
	case wanted.met(next.Servers):
		next.Servers = without(next.Servers, Newcomer)
	case !wanted.current(next.Servers[newcomer]):
		next.Servers[newcomer].Spec, next.Servers[newcomer].Since = wanted.Servers[next.Servers[newcomer].Slot], facts.Now
	case facts.of(next.Servers[newcomer]).State == runner.Ready:
		next.Servers[newcomer].Phase, next.Servers[newcomer].Since = Serving, facts.Now
		if serving >= wanted.Replicas {
			wanted.drain(next.Servers, facts)
		}
	case serving > 0:
		if reason = facts.hopeless(next.Servers[newcomer]); reason != "" {
			next.Servers = without(next.Servers, Newcomer)
		}
	}
	if len(next.Followers) == 0 || wanted.alone(next.Servers) {
		next.Followers = wanted.Followers
	}
	return next, reason
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
	ready := func(s Server) bool { return s.Phase == Serving && facts.of(s).State == runner.Ready }
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

// of is the status of a server; empty if it has none.
func (f Facts) of(s Server) runner.Status {
	for _, status := range f.Statuses {
		if status.Name == s.Spec.Name {
			return status
		}
	}
	return runner.Status{}
}

// hopeless says why a newcomer is given up, or "".
func (f Facts) hopeless(s Server) string {
	status := f.of(s)
	switch {
	case status.State == runner.Backoff && status.Restarts >= maxEnds:
		return fmt.Sprintf("it ended %d times: %s", status.Restarts, status.Message)
	case f.Now.Sub(s.Since) > patience:
		return fmt.Sprintf("it was not Ready within %s: %s", patience, status.Message)
	}
	return ""
}

// narrow says why a newcomer is not started beside servers that serve, or "".
func (f Facts) narrow() string {
	if f.Room < 0 || f.Room >= newcomerMemory {
		return ""
	}
	return fmt.Sprintf("it was not started: the host has %d MiB of memory available, and one more kube-apiserver needs %d MiB while it takes over: "+
		"stop other programs, or use a host with more memory", f.Room>>20, newcomerMemory>>20)
}
