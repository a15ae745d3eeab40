// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/policy"
)

// Fake is an inventory and access reviews in memory, which fail on demand. For tests.
type Fake struct {
	Now func() time.Time
	// OnChange is told of each change, as by an Inventory.
	OnChange func(Change)

	mu       sync.Mutex
	machines map[string]policy.Machine
	unknown  string
	refuse   bool
	reviews  []policy.Access
}

// Put adds or replaces a machine.
func (f *Fake) Put(m policy.Machine) {
	f.mu.Lock()
	if f.machines == nil {
		f.machines = map[string]policy.Machine{}
	}
	f.machines[m.ID] = m
	f.mu.Unlock()
	f.tell(changeOf(m))
}

// Break makes every answer Unknown, with the reason; "" repairs it.
func (f *Fake) Break(why string) {
	f.mu.Lock()
	f.unknown = why
	f.mu.Unlock()
	if why == "" {
		f.tell(Change{All: true})
	}
}

// Refuse makes access reviews say no, or yes again.
func (f *Fake) Refuse(refuse bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

// Reviews returns the access reviews so far.
func (f *Fake) Reviews() []policy.Access {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reviews)
}

func (f *Fake) tell(c Change) {
	if f.OnChange != nil {
		f.OnChange(c)
	}
}

func (f *Fake) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

// HasSynced is always true.
func (f *Fake) HasSynced() bool { return true }

// Machine finds a machine by its ID.
func (f *Fake) Machine(id string) policy.Fact[policy.Machine] {
	return f.one(func(m policy.Machine) bool { return m.ID == id })
}

// MachineOfNode finds a machine by the name of its node.
func (f *Fake) MachineOfNode(node string) policy.Fact[policy.Machine] {
	return f.one(func(m policy.Machine) bool { return m.NodeName == node })
}

func (f *Fake) one(match func(policy.Machine) bool) policy.Fact[policy.Machine] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unknown != "" {
		return policy.DontKnow[policy.Machine]("fake", f.unknown)
	}
	for _, m := range f.machines {
		if match(m) {
			return policy.Know(m, "fake", f.now())
		}
	}
	return policy.None[policy.Machine]("fake", f.now())
}

// Owners finds all machines with a name or address.
func (f *Fake) Owners(name string) policy.Fact[[]string] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unknown != "" {
		return policy.DontKnow[[]string]("fake", f.unknown)
	}
	var ids []string
	for _, m := range f.machines {
		if slices.Contains(namesOf(m), name) {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return policy.Know(ids, "fake", f.now())
}

// Review says yes unless told otherwise.
func (f *Fake) Review(_ context.Context, q policy.Access) policy.Fact[bool] {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reviews = append(f.reviews, q)
	if f.unknown != "" {
		return policy.DontKnow[bool]("fake", f.unknown)
	}
	return policy.Know(!f.refuse, "fake", f.now())
}
