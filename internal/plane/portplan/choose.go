// SPDX-License-Identifier: Apache-2.0

package portplan

import (
	"errors"
	"fmt"
	"slices"
)

// Ports are taken from Min up to Max, which is left out: below the range that Linux gives to outgoing connections
// (32768 and up), where a port that was free yesterday may be in use by chance today.
const (
	Min = 20000
	Max = 32000
)

// tries is how many ports are looked at for one that is free.
const tries = 200

// wish is a port that a plane needs. Either of its processes listens on it; the service itself, which has no process here,
// does not yet.
type wish struct {
	port      *int
	processes []string
	asked     bool // by the user: no other will do
}

// surroundings are what decides about a port besides the wish for it.
type surroundings struct {
	address string                 // that processes listen on
	taken   map[int]bool           // by the account's other planes, running or not
	running map[string]bool        // processes of the account, by name
	use     func(port int) error   // who has it, nil if nobody has
	random  func(n int) (less int) // returns a number from 0 to n-1
}

// choose keeps the ports that a plane has, and chooses those that are missing or have since been taken by other
// programs. The functions of its argument in do all I/O. If two wishes are for one port, the first wish gets it.
func choose(wishes []wish, in surroundings) error {
	taken := map[int]bool{}
	for port := range in.taken {
		taken[port] = true
	}
	for _, w := range wishes {
		if why := in.unusable(w, taken); why != nil {
			if w.asked {
				return inUse(*w.port, why)
			}
			port, err := pick(taken, in)
			if err != nil {
				return err
			}
			*w.port = port
		}
		taken[*w.port] = true
	}
	return nil
}

// unusable says why a plane does not keep the port of a wish, nil if it does.
func (in surroundings) unusable(w wish, taken map[int]bool) error {
	switch {
	case *w.port == 0:
		return errors.New("there is none yet")
	case taken[*w.port]:
		return errors.New("another plane of this account has it")
	case slices.ContainsFunc(w.processes, func(process string) bool { return in.running[process] }):
		return nil
	}
	return in.use(*w.port)
}

// pick chooses a port that nobody has. Any user of the host may listen on these ports, which cannot be prevented: it is
// told who does.
func pick(taken map[int]bool, in surroundings) (int, error) {
	var last string
	for range tries {
		port := Min + in.random(Max-Min)
		if taken[port] {
			continue
		}
		why := in.use(port)
		if why == nil {
			return port, nil
		}
		last = fmt.Sprintf(" (the last was %d: %v)", port, why)
	}
	return 0, fmt.Errorf("found no free port from %d to %d on %s in %d tries%s: stop programs that listen there; any user of the host may, and nothing prevents it",
		Min, Max, in.address, tries, last)
}

func inUse(port int, why error) error {
	return fmt.Errorf("spec.apiServer.port: %d is in use: %w: choose another port, or leave it out and a free one is taken", port, why)
}
