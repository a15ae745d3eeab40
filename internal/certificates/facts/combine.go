// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// Mode selects which of several sources must agree.
type Mode string

// The modes. The order of the sources matters in both.
const (
	// Any believes the first source, in order, that knows the machine of a node: its names and addresses and no
	// other's. The machine is absent if no source has it.
	Any Mode = "any"
	// All believes what all sources say: a machine is known if all know it, with the names and addresses that all give
	// it.
	All Mode = "all"
)

// Combined is several sources as one.
//
// A machine may have another ID in each source; the one that counts is that of the first source that knows a machine of
// the same node name. So the ID of one and the same machine may change when a source fails and the next one is
// believed, or comes back: the IDs of two facts can be compared only if their Source is the same.
//
// A machine that is being deleted in any source is being deleted.
type Combined struct {
	mode    Mode
	sources []Source
}

// Combine makes one inventory of sources. Their changes are the changes of it.
func Combine(mode Mode, sources ...Source) (*Combined, error) {
	if mode != Any && mode != All {
		return nil, fmt.Errorf("sources of machines cannot be combined by %q: use %s or %s", mode, Any, All)
	}
	if len(sources) == 0 {
		return nil, errors.New("an inventory needs a source of machines")
	}
	names := map[string]bool{}
	for _, s := range sources {
		if names[s.Name()] {
			return nil, fmt.Errorf("two sources of machines have the name %s: give each its own", s.Name())
		}
		names[s.Name()] = true
	}
	return &Combined{mode, slices.Clone(sources)}, nil
}

// Run runs all sources until ctx is done.
func (c *Combined) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, s := range c.sources {
		group.Go(func() { s.Run(ctx) })
	}
	group.Wait()
}

// HasSynced reports whether some machine can be known at all: by one source if any may decide, otherwise by all.
func (c *Combined) HasSynced() bool {
	if c.mode == Any {
		return slices.ContainsFunc(c.sources, Source.HasSynced)
	}
	return !slices.ContainsFunc(c.sources, func(s Source) bool { return !s.HasSynced() })
}

// Status returns the health of each source, in their order.
func (c *Combined) Status() []SourceStatus {
	var all []SourceStatus
	for _, s := range c.sources {
		all = append(all, s.Status())
	}
	return all
}

// Machine finds a machine by its ID.
func (c *Combined) Machine(id string) policy.Fact[policy.Machine] {
	said := c.ask(func(s Source) policy.Fact[policy.Machine] { return s.Machine(id) })
	f := said.first()
	if c.mode == All {
		f = said.facts[0] // its IDs are the ones that count
	}
	if f.State != policy.Known {
		return f
	}
	// All sources together decide what is known of it, and they find each other's machines by the node name.
	if f.Value.NodeName != "" {
		f = c.MachineOfNode(f.Value.NodeName)
	}
	f.Value.Deleting = f.Value.Deleting || said.deleting()
	return f
}

// MachineOfNode finds the machine that may register a node.
func (c *Combined) MachineOfNode(node string) policy.Fact[policy.Machine] {
	said := c.ask(func(s Source) policy.Fact[policy.Machine] { return s.MachineOfNode(node) })
	f := said.first()
	if c.mode == All {
		f = said.common()
	}
	if f.State == policy.Known {
		f.Value.Deleting = said.deleting()
	}
	return f
}

// knowsClusters is a source that has the machines of other clusters, too, and tells them apart.
type knowsClusters interface {
	Elsewhere(id string) policy.Fact[string]
}

// Elsewhere finds the other cluster that a machine was launched for, whichever source knows it. It is Absent if no
// source knows the machine as another cluster's.
func (c *Combined) Elsewhere(id string) policy.Fact[string] {
	found, asked := policy.None[string]("inventory", time.Now()), false
	for _, s := range c.sources {
		of, ok := s.(knowsClusters)
		if !ok {
			continue
		}
		f := of.Elsewhere(id)
		if f.State == policy.Known {
			return f
		}
		if !asked || f.State == policy.Unknown {
			found, asked = f, true
		}
	}
	return found
}

// Owners finds the IDs of all machines that have a DNS name or an address, according to any source. A name or address
// that is a machine's own in one source is nobody's by a range of another.
func (c *Combined) Owners(name string) policy.Fact[[]string] {
	var ids, ranged, named []string
	var unknown opinions[[]policy.Machine]
	var oldest time.Time
	var asked string // the source that is finding out which machine an owner is
	for _, s := range c.sources {
		f := s.Owners(name)
		if f.State == policy.Unknown {
			unknown.add(s, f)
			continue
		}
		named = append(named, s.Name())
		if oldest.IsZero() || f.At.Before(oldest) {
			oldest = f.At
		}
		for _, m := range f.Value {
			id, soon := c.idOf(s, m)
			if soon {
				asked = s.Name()
			}
			if _, ok := m.RangeOf(name); ok && !m.Owns(name) {
				ranged = append(ranged, id)
				continue
			}
			ids = append(ids, id)
		}
	}
	if asked != "" {
		return policy.Fact[[]string]{Source: asked, Why: "which machine it is that has it is being looked up", Soon: true}
	}
	// If any source may decide, one that fails is not missed as long as another one knows an owner.
	if len(unknown.facts) > 0 && (c.mode == All || len(ids) == 0) {
		names, why, soon := unknown.unknown()
		return policy.Fact[[]string]{Source: names, Why: why, Soon: soon}
	}
	if len(ids) == 0 {
		ids = ranged
	}
	slices.Sort(ids)
	return policy.Know(slices.Compact(ids), strings.Join(named, " and "), oldest)
}

// idOf is the ID that counts of a machine of one source. If that source does not confirm that the machine is the
// machine of its node, as when two machines have the same node name, it is not matched with a machine of another source
// either. Soon means that the source is still looking: until then two sources may report one machine twice, and the
// second may seem to have addresses of the first.
func (c *Combined) idOf(of Source, m policy.Machine) (id string, soon bool) {
	if m.NodeName == "" || len(c.sources) == 1 {
		return m.ID, false
	}
	if own := of.MachineOfNode(m.NodeName); own.State != policy.Known || own.Value.ID != m.ID {
		return m.ID, own.Soon
	}
	for _, s := range c.sources {
		if f := s.MachineOfNode(m.NodeName); f.State == policy.Known {
			return f.Value.ID, false
		}
	}
	return m.ID, false
}
