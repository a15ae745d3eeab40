// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"sync"
	"time"
)

const (
	// bootTime is the longest for which a machine counts as booting: many times what a boot takes. A machine that never
	// comes up must not hold up others.
	bootTime = 20 * time.Second
	// bootAgain is how often a machine that waits asks whether it may boot.
	bootAgain = time.Second
)

// Boots paces the boots of local machines of all clusters of an account. A boot takes the host's processors for
// seconds: many at once are all late, and the control plane with them. A nil *Boots lets all boot.
type Boots struct {
	most int

	mu    sync.Mutex
	began map[string]time.Time
}

// NewBoots lets that many machines boot at once.
func NewBoots(most int) *Boots { return &Boots{most: most, began: map[string]time.Time{}} }

// begin reports whether a machine may boot now, and counts it as booting.
func (b *Boots) begin(id string, now time.Time) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	booting := 0
	for other, began := range b.began {
		switch {
		case now.Sub(began) >= bootTime:
			delete(b.began, other)
		case other != id:
			booting++
		}
	}
	if booting >= b.most {
		return false
	}
	b.began[id] = now
	return true
}

// heard ends the boot of a machine whose kubelet said at a moment that the node is Ready. A report of the kubelet from
// before the boot, when the machine ran the last time, does not count. The moment has whole seconds, as Kubernetes has
// them.
func (b *Boots) heard(id string, at time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if began, ok := b.began[id]; ok && !at.Before(began.Truncate(time.Second)) {
		delete(b.began, id)
	}
}

// end ends the boot of a machine that failed or went.
func (b *Boots) end(id string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.began, id)
}
