// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// The methods of this file are called with the lock held.

// own returns the entry with names that are kept once, and notes what it says about its node.
func (r *Register) own(e Entry) Entry {
	for _, s := range []*string{&e.Signer, &e.Node, &e.Machine, &e.Requester, &e.Issuer} {
		*s = r.name(*s)
	}
	if e.Node == "" {
		return e
	}
	l, self := r.last[e.Node], e.Requester == nodePrefix+e.Node
	if self && e.NotBefore.After(l.spoke) {
		l.spoke = e.NotBefore
	}
	if e.joins() && e.NotBefore.After(l.joined) {
		l.joined = e.NotBefore
	}
	if isClient(e.Signer) || self && e.Machine != "" {
		l.note(e.Machine, e.NotBefore)
	}
	if isClient(e.Signer) {
		l.client = true
		l.until = later(l.until, e.NotAfter)
		l.hold(e, r.config.Now())
	}
	r.last[e.Node] = l
	return e
}

func (r *Register) name(s string) string {
	if kept, ok := r.names[s]; ok {
		return kept
	}
	r.names[s] = s
	return s
}

// note remembers the machine of the newest certificate of a node, also when nobody knew which one it is. The zero time
// is older than any.
func (l *last) note(machine string, at time.Time) {
	compared := machine == ""
	for n, k := range l.known {
		if same, ok := policy.MachineRef(k).Same(policy.MachineRef(machine)); ok {
			compared = true
			l.replaced = l.replaced || !same
			l.known[n] = machine
		}
	}
	if !compared {
		l.known = append(l.known, machine)
	}
	if !at.Before(l.at) {
		l.machine, l.at = machine, at
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// put takes a segment in, in place of the one of the same name.
func (r *Register) put(s *segment) {
	r.drop(s.name)
	r.segments[s.name] = s
	n, _ := slices.BinarySearchFunc(r.order, s, byAge)
	r.order = slices.Insert(r.order, n, s)
}

func (r *Register) drop(name string) {
	delete(r.segments, name)
	r.order = slices.DeleteFunc(r.order, func(s *segment) bool { return s.name == name })
}

// byAge is the order in which segments were begun, so that the first owner of a key stays the same.
func byAge(a, b *segment) int {
	return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.name, b.name))
}

// fill puts the content of a ConfigMap into a segment.
func (r *Register) fill(s *segment, c content) {
	for _, e := range c.entries {
		s.add(r.own(e))
	}
	for _, g := range c.groups {
		r.recall(g)
		s.retire(&r.groups, r.name(g.owner), r.name(g.machine), g.last, g.keys...)
	}
	s.sort()
}

// recall notes what keys tell of the certificates that they were of, which have expired.
func (r *Register) recall(g group) {
	if strings.HasPrefix(g.owner, userPrefix) {
		return
	}
	l := r.last[g.owner]
	switch {
	case !g.last.IsZero(): // there is a client certificate among them
		l.client = true
		l.note(g.machine, g.last)
		if slices.Contains(g.keys, joinOf(g.owner)) {
			l.joined = later(l.joined, g.last)
		}
	case g.machine != "":
		l.note(g.machine, time.Time{})
	default:
		return
	}
	r.last[g.owner] = l
}

// hasUID reports whether a request is on record, in another segment than the given one.
func (r *Register) hasUID(uid string, except *segment) bool {
	if r.pending != except && r.pending.uids[uid] {
		return true
	}
	for _, s := range r.segments {
		if s != except && s.uids[uid] {
			return true
		}
	}
	return false
}

// isRetired reports whether a key is kept forever for this owner, in another segment than the given one.
func (r *Register) isRetired(k short, owner string, except *segment) bool {
	has := func(s *segment) bool {
		n, _ := slices.BinarySearchFunc(s.retired, retired{key: k}, byKey)
		for ; n < len(s.retired) && s.retired[n].key == k; n++ {
			if r.groups.list[s.retired[n].group].owner == owner {
				return true
			}
		}
		return false
	}
	if r.pending != except && has(r.pending) {
		return true
	}
	for _, s := range r.segments {
		if s != except && has(s) {
			return true
		}
	}
	return false
}

// carry makes pending what a segment held that is nowhere else, and returns how much that was.
func (r *Register) carry(from *segment) int {
	var entries []Entry
	for _, e := range from.entries {
		if !r.hasUID(e.UID, from) && !r.isRetired(shorten(e.Key), e.owner(), from) {
			entries = append(entries, e)
		}
	}
	var keys []retired
	for _, k := range from.retired {
		if !r.isRetired(k.key, r.groups.list[k.group].owner, from) {
			keys = append(keys, k)
		}
	}
	if n := len(entries) + len(keys); n > 0 {
		r.pend(func() {
			for _, e := range entries {
				r.pending.add(e)
			}
			r.pending.retired = append(r.pending.retired, keys...)
			r.pending.sort()
		})
		return n
	}
	return 0
}

// settle drops from pending what is in a segment.
func (r *Register) settle(in *segment) {
	if r.pending.len() == 0 {
		return
	}
	r.pending.keep(func(e Entry) bool { return !in.uids[e.UID] })
	r.pending.retired = slices.DeleteFunc(r.pending.retired, func(k retired) bool {
		_, found := slices.BinarySearchFunc(in.retired, k, func(a, b retired) int {
			if n := byKey(a, b); n != 0 {
				return n
			}
			return int(a.group) - int(b.group)
		})
		return found
	})
}

// sorted returns entries by age, each once.
func sorted(all []Entry) []Entry {
	slices.SortFunc(all, func(a, b Entry) int {
		if n := a.NotBefore.Compare(b.NotBefore); n != 0 {
			return n
		}
		return strings.Compare(a.UID, b.UID)
	})
	return slices.CompactFunc(all, func(a, b Entry) bool { return a.UID == b.UID })
}
