// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/certificates/policy"
)

// opinions are what sources say about one thing, in the order of the sources.
type opinions[T any] struct {
	sources []string
	facts   []policy.Fact[T]
}

func (o *opinions[T]) add(s Source, f policy.Fact[T]) {
	o.sources = append(o.sources, s.Name())
	o.facts = append(o.facts, f)
}

// unknown tells which sources do not know and why. If one of them is finding out, a change will tell.
func (o *opinions[T]) unknown() (sources, why string, soon bool) {
	var names, reasons []string
	for i, f := range o.facts {
		if f.State == policy.Unknown {
			names = append(names, o.sources[i])
			reasons = append(reasons, f.Why)
			soon = soon || f.Soon
		}
	}
	if len(names) == 1 {
		return names[0], reasons[0], soon
	}
	for i := range reasons {
		reasons[i] = names[i] + ": " + reasons[i]
	}
	return strings.Join(names, " and "), strings.Join(reasons, "; "), soon
}

// machines are what sources say about one machine.
type machines struct {
	opinions[policy.Machine]
}

// ask asks all sources, also those whose answer may not be needed: each may know that the machine is being deleted.
func (c *Combined) ask(question func(Source) policy.Fact[policy.Machine]) *machines {
	var said machines
	for _, s := range c.sources {
		said.add(s, question(s))
	}
	return &said
}

// first is what the first source says that knows the machine.
func (m *machines) first() policy.Fact[policy.Machine] {
	absent := 0
	oldest := m.facts[0].At
	for _, f := range m.facts {
		switch f.State {
		case policy.Known:
			return f
		case policy.Absent:
			absent++
			if f.At.Before(oldest) {
				oldest = f.At
			}
		case policy.Unknown:
		}
	}
	if absent == len(m.facts) {
		return policy.None[policy.Machine](strings.Join(m.sources, " and "), oldest)
	}
	return m.dontKnow()
}

// common is what all sources say: the machine of the first one, with the names and addresses that all of them give it.
func (m *machines) common() policy.Fact[policy.Machine] {
	known := 0
	for _, f := range m.facts {
		switch f.State {
		case policy.Absent:
			return f
		case policy.Known:
			known++
		case policy.Unknown:
		}
	}
	if known < len(m.facts) {
		return m.dontKnow()
	}
	out := m.facts[0]
	out.Source = strings.Join(m.sources, " and ")
	out.Value.Names = slices.Clone(out.Value.Names)
	for _, f := range m.facts[1:] {
		out.Value.Names = slices.DeleteFunc(out.Value.Names, func(n string) bool { return !slices.Contains(f.Value.Names, n) })
		out.Value.Addresses, out.Value.Ranges = common(out.Value, f.Value)
		if out.Value.Group == "" {
			out.Value.Group = f.Value.Group
		}
		if out.Value.Created.IsZero() {
			out.Value.Created = f.Value.Created
		}
		if f.At.Before(out.At) {
			out.At = f.At
		}
	}
	return out
}

func (m *machines) dontKnow() policy.Fact[policy.Machine] {
	names, why, soon := m.unknown()
	f := policy.DontKnow[policy.Machine](names, why)
	f.Soon = soon
	return f
}

func (m *machines) deleting() bool {
	return slices.ContainsFunc(m.facts, func(f policy.Fact[policy.Machine]) bool { return f.State == policy.Known && f.Value.Deleting })
}
