// SPDX-License-Identifier: Apache-2.0

package portplan

import (
	"fmt"
)

// Ports are taken from Min up to Max, which is left out: below the range that Linux gives to outgoing connections (32768 and up), where a
// port that was free yesterday may be in use by chance today.
const (
	Min = 20000
	Max = 32000
)

// tries is how many ports are looked at for one that is free.
const tries = 200

// wish is a port that a plane needs, and the process that listens on it; empty for the service itself, which does not yet.
type wish struct {
	port    *int
	process string
	asked   bool // by the user: no other will do
}

// surroundings are what decides about a port besides the wish for it.
type surroundings struct {
	address string                 // that processes listen on
	taken   map[int]bool           // by the account's other planes, running or not
	running map[string]bool        // processes of the account, by name
	free    func(port int) bool    // reports whether nothing listens on it
	random  func(n int) (less int) // one of n numbers from 0
}

// choose keeps the ports that a plane has, and chooses those that are missing or have since been taken by other programs. It is pure but for
// what it is given. Of two wishes for one port the first has it.
func choose(wishes []wish, in surroundings) error {
	taken := map[int]bool{}
	for port := range in.taken {
		taken[port] = true
	}
	for _, w := range wishes {
		if *w.port == 0 || taken[*w.port] || !in.running[w.process] && !in.free(*w.port) {
			if w.asked {
				return inUse(*w.port)
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

func pick(taken map[int]bool, in surroundings) (int, error) {
	for range tries {
		port := Min + in.random(Max-Min)
		if !taken[port] && in.free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("found no free port from %d to %d on %s: stop programs that listen there", Min, Max, in.address)
}

func inUse(port int) error {
	return fmt.Errorf("spec.apiServer.port: %d is in use by another program: choose another port, or leave it out and a free one is taken", port)
}
