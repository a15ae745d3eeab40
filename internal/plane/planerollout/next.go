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
	// Servers has the API server of each slot: one of them is to serve.
	Servers []component.Spec
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

// free is the first slot that no server is in.
func (w Wanted) free(servers []Server) int {
	for slot := range w.Servers {
		if !slices.ContainsFunc(servers, func(s Server) bool { return s.Slot == slot }) {
			return slot
		}
	}
	return -1
}

// Next returns what follows a record that has been carried out; the same record if nothing does for now. statuses are the
// runner's. refused says that the wanted spec was refused before; a reason that it is refused now, and why.
func Next(is Record, wanted Wanted, statuses []runner.Status, refused bool, now time.Time) (next Record, reason string) {
	next = Record{Servers: without(is.Servers, Draining), Followers: is.Followers} // servers that drained have ended
	serving := slices.IndexFunc(next.Servers, func(s Server) bool { return s.Phase == Serving })
	newcomer := slices.IndexFunc(next.Servers, func(s Server) bool { return s.Phase == Newcomer })
	switch {
	case newcomer >= 0 && serving >= 0 && wanted.current(next.Servers[serving]):
		next.Servers = without(next.Servers, Newcomer)
	case newcomer >= 0 && !wanted.current(next.Servers[newcomer]):
		next.Servers[newcomer].Spec, next.Servers[newcomer].Since = wanted.Servers[next.Servers[newcomer].Slot], now
	case newcomer >= 0 && stateOf(statuses, next.Servers[newcomer]).State == runner.Ready:
		next.Servers[newcomer].Phase, next.Servers[newcomer].Since = Serving, now
		if serving >= 0 {
			next.Servers[serving].Phase, next.Servers[serving].Since = Draining, now
		}
	case newcomer >= 0 && serving >= 0:
		if reason = hopeless(next.Servers[newcomer], statuses, now); reason != "" {
			next.Servers = without(next.Servers, Newcomer)
		}
	case newcomer < 0 && (serving < 0 || !wanted.current(next.Servers[serving]) && !refused):
		if slot := wanted.free(next.Servers); slot >= 0 {
			next.Servers = append(next.Servers, Server{Slot: slot, Phase: Newcomer, Spec: wanted.Servers[slot], Since: now})
		}
	}
	if len(next.Followers) == 0 || wanted.alone(next.Servers) {
		next.Followers = wanted.Followers
	}
	return next, reason
}

// without returns the servers that are in another phase, which the caller may change.
func without(servers []Server, phase Phase) []Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s Server) bool { return s.Phase == phase })
}

func stateOf(statuses []runner.Status, s Server) runner.Status {
	for _, status := range statuses {
		if status.Name == s.Spec.Name {
			return status
		}
	}
	return runner.Status{}
}

// hopeless says why a newcomer is given up, or "".
func hopeless(s Server, statuses []runner.Status, now time.Time) string {
	status := stateOf(statuses, s)
	switch {
	case status.State == runner.Backoff && status.Restarts >= maxEnds:
		return fmt.Sprintf("it ended %d times: %s", status.Restarts, status.Message)
	case now.Sub(s.Since) > patience:
		return fmt.Sprintf("it was not Ready within %s: %s", patience, status.Message)
	}
	return ""
}
