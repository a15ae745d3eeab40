// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"sync"
	"time"

	"muster.dev/muster/internal/machine/fargate"
)

// full remembers for which sizes the host had no room a moment ago. Many pods may wait for room: the first of a size asks
// again after refusedAgain, and the others do not, since to ask is to list all machines of the account. It has an entry
// for each size at most.
type full struct {
	mu sync.Mutex
	of map[fargate.Size]refusal
}

type refusal struct {
	until   time.Time
	message string
}

// note remembers a refusal.
func (f *full) note(size fargate.Size, now time.Time, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[fargate.Size]refusal{}
	}
	f.of[size] = refusal{now.Add(refusedAgain), message}
}

// says is why the host has no room for a size, as far as that was asked a moment ago; empty if it was not.
func (f *full) says(size fargate.Size, now time.Time) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was, ok := f.of[size]; ok && now.Before(was.until) {
		return was.message
	}
	return ""
}
