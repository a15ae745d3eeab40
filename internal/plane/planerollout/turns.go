// SPDX-License-Identifier: Apache-2.0

package planerollout

import "sync"

// Turns lets one rollout at a time have a newcomer beside servers that serve. Its zero value is nobody's turn.
type Turns struct{ mu sync.Mutex }

// takeTurn reports whether the next record may be: one with a newcomer beside a server that serves takes the turn.
func (r *Rollout) takeTurn(next Record) bool {
	if !r.turn && count(next.Servers, Newcomer) > 0 && count(next.Servers, Serving) > 0 {
		r.turn = r.config.Turns.mu.TryLock()
		return r.turn
	}
	return true
}

// giveTurn gives the turn back if the rollout has it.
func (r *Rollout) giveTurn() {
	if r.turn {
		r.turn = false
		r.config.Turns.mu.Unlock()
	}
}
