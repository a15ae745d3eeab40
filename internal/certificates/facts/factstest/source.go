// SPDX-License-Identifier: Apache-2.0

// Package factstest has sources of machines and an inventory in memory, which fail on demand.
package factstest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
)

// Source is a source in memory, which fails on demand. Its zero value works.
type Source struct {
	// Called is its name; "fake" if empty.
	Called string
	Now    func() time.Time // time.Now if nil
	// OnChange is told of each change, as by any source.
	OnChange func(facts.Change)

	mu       sync.Mutex
	machines map[string]policy.Machine
	others   map[string]string // the clusters of machines of other clusters
	unknown  string
	soon     bool
	unsynced bool
	at       time.Time
}

var _ facts.Source = (*Source)(nil)

// Put adds or replaces a machine.
func (f *Source) Put(m policy.Machine) {
	f.mu.Lock()
	if f.machines == nil {
		f.machines = map[string]policy.Machine{}
	}
	before := f.machines[m.ID]
	f.machines[m.ID] = m
	f.mu.Unlock()
	f.tell(facts.ChangeOf(before, m))
}

// PutElsewhere adds a machine of another cluster.
func (f *Source) PutElsewhere(id, cluster string) {
	f.mu.Lock()
	if f.others == nil {
		f.others = map[string]string{}
	}
	f.others[id] = cluster
	f.mu.Unlock()
	f.tell(facts.Change{Machines: []string{id}})
}

// Elsewhere finds the other cluster of a machine.
func (f *Source) Elsewhere(id string) policy.Fact[string] {
	found := f.find(func(policy.Machine) bool { return false })
	f.mu.Lock()
	defer f.mu.Unlock()
	cluster, ok := f.others[id]
	switch {
	case found.State == policy.Unknown:
		return policy.Fact[string]{Why: found.Why, Source: found.Source, Soon: found.Soon}
	case !ok:
		return policy.None[string](found.Source, found.At)
	}
	return policy.Know(cluster, found.Source, found.At)
}

// Remove takes a machine away.
func (f *Source) Remove(id string) {
	f.mu.Lock()
	before := f.machines[id]
	delete(f.machines, id)
	f.mu.Unlock()
	f.tell(facts.ChangeOf(before))
}

// Break makes every answer Unknown, with the reason; "" repairs it.
func (f *Source) Break(why string) { f.set(why == "", func() { f.unknown, f.soon = why, false }) }

// Ask makes every answer Unknown and Soon, as if it were being found out; Break("") answers.
func (f *Source) Ask() {
	f.set(false, func() { f.unknown, f.soon = "it is being looked up", true })
}

// Unsync makes it as if it had never read anything, or had.
func (f *Source) Unsync(unsynced bool) { f.set(!unsynced, func() { f.unsynced = unsynced }) }

// Age makes answers as old as the time; the zero time makes them current.
func (f *Source) Age(at time.Time) { f.set(false, func() { f.at = at }) }

func (f *Source) set(tell bool, change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	if tell {
		f.tell(facts.Change{All: true})
	}
}

func (f *Source) tell(c facts.Change) {
	if f.OnChange != nil {
		f.OnChange(c)
	}
}

// Name is "fake" unless it is Called otherwise.
func (f *Source) Name() string {
	if f.Called == "" {
		return "fake"
	}
	return f.Called
}

// Run does nothing until ctx is done.
func (f *Source) Run(ctx context.Context) { <-ctx.Done() }

// HasSynced is true unless it was told otherwise.
func (f *Source) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.unsynced
}

// Status returns what Break, Unsync and Age set.
func (f *Source) Status() facts.SourceStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := facts.SourceStatus{Name: f.Name(), Synced: !f.unsynced, Problem: f.unknown}
	if !f.at.IsZero() {
		s.Age = f.now().Sub(f.at)
	}
	return s
}

// Machine finds a machine by its ID.
func (f *Source) Machine(id string) policy.Fact[policy.Machine] {
	return f.one(func(m policy.Machine) bool { return m.ID == id })
}

// MachineOfNode finds a machine by the name of its node.
func (f *Source) MachineOfNode(node string) policy.Fact[policy.Machine] {
	return f.one(func(m policy.Machine) bool { return node != "" && m.NodeName == node })
}

func (f *Source) one(match func(policy.Machine) bool) policy.Fact[policy.Machine] {
	all := f.find(match)
	switch {
	case all.State != policy.Known:
		return policy.Fact[policy.Machine]{Why: all.Why, Source: all.Source, Soon: all.Soon}
	case len(all.Value) == 0:
		return policy.None[policy.Machine](all.Source, all.At)
	case len(all.Value) > 1:
		return policy.DontKnow[policy.Machine](all.Source, "there are two")
	}
	return policy.Know(all.Value[0], all.Source, all.At)
}

// Owners finds all machines with a name or address.
func (f *Source) Owners(name string) policy.Fact[[]policy.Machine] {
	return f.find(func(m policy.Machine) bool {
		_, ranged := m.RangeOf(name)
		return ranged || m.Owns(name)
	})
}

func (f *Source) find(match func(policy.Machine) bool) policy.Fact[[]policy.Machine] {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.unsynced:
		return policy.DontKnow[[]policy.Machine](f.Name(), "it has not been read yet")
	case f.unknown != "":
		return policy.Fact[[]policy.Machine]{Source: f.Name(), Why: f.unknown, Soon: f.soon}
	}
	var found []policy.Machine
	for _, m := range f.machines {
		if match(m) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b policy.Machine) int { return strings.Compare(a.ID, b.ID) })
	at := f.at
	if at.IsZero() {
		at = f.now()
	}
	return policy.Know(found, f.Name(), at)
}

func (f *Source) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}
