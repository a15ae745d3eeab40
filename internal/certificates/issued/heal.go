// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// heal assigns a machine to certificates that are on record without one: other signers issued them, or an older version
// of this program. It is the machine that a later certificate of the node went to, or else the machine that the
// inventory names now. The certificate may have gone to another machine, but its entry does not change again. A
// certificate that was issued before the node last joined, or before the machine was made that the inventory names, is
// left as it is: the joined machine uses the certificate that it got then.
func (r *Register) heal(ctx context.Context) error {
	found := r.lost()
	if len(found) == 0 {
		return nil
	}
	for _, s := range r.incomplete(found) {
		switch err := r.write(ctx, s); {
		case errors.Is(err, errAgain):
			return nil // another replica is at work: its entries are read the next time
		case err != nil:
			return fmt.Errorf("completing what is on record: %w", err)
		}
	}
	r.mu.Lock()
	r.pending.complete(r.places(found))
	for node, h := range found {
		l := r.last[node]
		l.place(h)
		r.last[node] = l
	}
	r.mu.Unlock()
	nodes := slices.Sorted(maps.Keys(found))
	r.config.Logger.Warn("certificates were on record without their machine: they are put down to the machines that the nodes are now",
		"nodes", len(nodes), "first", nodes[0], "machine", found[nodes[0]].machine)
	return nil
}

// home is the machine to put certificates down to that became good since.
type home struct {
	machine string
	since   time.Time
}

// lost returns the nodes with a certificate of unknown machine, and the machine to put it down to; nodes of which that
// cannot be told (yet) are left out.
func (r *Register) lost() map[string]home {
	found := map[string]home{}
	r.mu.RLock()
	for node, l := range r.last {
		if h := (home{l.machine, l.joined}); l.lost(h) {
			found[node] = h
		}
	}
	r.mu.RUnlock()
	for node, h := range found {
		delete(found, node)
		m := r.config.MachineOfNode(node)
		if m.State == policy.Known && m.Value.NodeName == node && m.Value.ID != "" {
			ref := policy.RefOf(m)
			if h.machine == "" {
				h.machine = string(ref)
			}
			if same, ok := policy.MachineRef(h.machine).Same(ref); ok && same {
				h.since = later(h.since, m.Value.CertifiedFrom())
			}
		}
		r.mu.RLock()
		if l := r.last[node]; h.machine != "" && l.lost(h) {
			found[node] = h
		}
		r.mu.RUnlock()
	}
	return found
}

// lost reports whether a certificate that may be put down to a machine is of unknown machine. A node that was several
// machines is not for anybody to guess about.
func (l *last) lost(h home) bool { return !l.replaced && slices.ContainsFunc(l.held, h.misses) }

func (h home) misses(c credential) bool { return c.machine == "" && !c.since.Before(h.since) }

func (l *last) place(h home) {
	l.held = slices.Clone(l.held)
	for n, c := range l.held {
		if h.misses(c) {
			l.held[n].machine = h.machine
		}
	}
	l.note(h.machine, l.at)
}

// places returns what completes an entry: it is called with the lock held.
func (r *Register) places(found map[string]home) func(*Entry) bool {
	return func(e *Entry) bool {
		h := found[e.Node]
		if h.machine == "" || e.Machine != "" || !isClient(e.Signer) || e.NotBefore.Before(h.since) {
			return false
		}
		e.Machine = r.name(h.machine)
		return true
	}
}

// incomplete returns completed copies of the segments that hold certificates without their machine.
func (r *Register) incomplete(found map[string]home) (list []*segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	place := r.places(found)
	for _, s := range r.order {
		if !s.writable() {
			continue // it is evidence; the entry in memory is completed
		}
		if c := s.clone(); c.complete(place) {
			list = append(list, c)
		}
	}
	return list
}

// complete reports whether an entry was changed.
func (s *segment) complete(place func(*Entry) bool) (changed bool) {
	for n := range s.entries {
		changed = place(&s.entries[n]) || changed
	}
	return changed
}
