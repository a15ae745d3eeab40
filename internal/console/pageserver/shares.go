// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"cmp"
	"maps"
	"strings"
	"sync"
	"time"
)

const (
	// mostStreams is how many streams the user of the command has at once, mostOfIdentity how many an IAM identity has, in all its sessions
	// together, and mostOfIdentities how many all of them have: nobody takes the streams of others, or all connections.
	mostStreams, mostOfIdentity, mostOfIdentities = 16, 6, 24
	// mostProofs is how many used tokens of one identity are remembered. More are refused until some are too old.
	mostProofs = 64
)

// shares counts the streams of each viewer.
type shares struct {
	mu sync.Mutex
	of map[string]int // by the owner of the session; empty for the user of the command
}

// take takes one more for a viewer until it is undone; false if there are as many as may be.
func (s *shares) take(owner string) (undo func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most, others := mostStreams, 0
	if owner != "" {
		most = mostOfIdentity
		for of, n := range s.of {
			if of != "" {
				others += n
			}
		}
	}
	if s.of[owner] >= most || others >= mostOfIdentities {
		return nil, false
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.of[owner]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.of[owner]--; s.of[owner] == 0 {
			delete(s.of, owner)
		}
	}, true
}

// owner names whose a session is: a user, or a role whatever its sessions call themselves; empty for the user of the command.
func (by *viewing) owner() string {
	if by.who == nil {
		return ""
	}
	id, _, _ := strings.Cut(by.who.UserID, ":") // that of a role's session has the session's name behind
	return cmp.Or(id, by.who.ARN)
}

// crowded is the session that goes when there are too many with another one: the oldest of the identity that has the most. So no identity ends
// the sessions of another by signing in again and again.
func crowded(all map[secretHash]session, another string) secretHash {
	have := map[string]int{another: 1}
	for _, one := range all {
		have[one.by.owner()]++
	}
	most := 0
	for _, n := range have {
		most = max(most, n)
	}
	left := maps.Clone(all)
	maps.DeleteFunc(left, func(_ secretHash, one session) bool { return have[one.by.owner()] < most })
	if len(left) == 0 { // no session is left of the one that has the most, which is the new one
		left = all
	}
	return oldestOf(left, func(one session) time.Time { return one.before })
}
