// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// checkNamesAssigned wants every DNS name to be one that the inventory assigned to this very machine, and to no other.
func checkNamesAssigned(e evaluation) outcome {
	names := canonicalNames(e.request.CSR.DNSNames())
	switch {
	case !e.profile.Node:
		return notApplicable(notANode)
	case len(names) == 0:
		return notApplicable("no DNS names")
	}
	if e.servesAlready() {
		return e.unowned("DNS name", names)
	}
	o := e.assigned("DNS name", names, func(m Machine) []string {
		if m.NodeName == "" {
			return m.Names
		}
		return append(slices.Clone(m.Names), m.NodeName)
	})
	if !o.passes() {
		return o
	}
	for _, n := range names {
		switch isNode := e.facts.Nodes[n]; {
		case n == e.node:
		case isNode.State == Unknown:
			return waitFor(isNode, "it is not known whether there is a node %s", n)
		case isNode.State == Known && isNode.Value:
			return wait("delete that Node, or take the name out of the inventory", "machine %s has the name of another node, %s", e.facts.NodeMachine.Value.ID, n)
		}
	}
	return o
}

// checkAddressesAssigned wants the same of every address.
func checkAddressesAssigned(e evaluation) outcome {
	addresses := e.request.CSR.Addresses()
	switch {
	case !e.profile.Node:
		return notApplicable(notANode)
	case len(addresses) == 0:
		return notApplicable("no addresses")
	}
	var texts []string
	for _, a := range addresses {
		texts = append(texts, a.String())
	}
	if e.servesAlready() {
		return e.unowned("address", texts)
	}
	return e.assigned("address", texts, func(m Machine) []string {
		var own []string
		for _, a := range m.Addresses {
			own = append(own, a.Unmap().String())
		}
		for _, r := range m.Ranges {
			own = append(own, r.String())
		}
		return own
	})
}

// assigned compares what is asked for with what the machine has. A mismatch is final only when the inventory says that
// another machine has it: an unowned name may be this machine's in a moment, as addresses come and go.
func (e evaluation) assigned(what string, asked []string, have func(Machine) []string) outcome {
	m := e.facts.NodeMachine
	if m.State != Known || m.Value.NodeName == "" || m.Value.NodeName != e.node {
		o := wait("", "the machine is not known, so what it was assigned is not either")
		o.soon = m.State == Unknown && m.Soon
		return o
	}
	own := have(m.Value)
	var undecided *outcome
	shown := slices.Clone(asked)
	for i, a := range asked {
		o := e.owned(what, a, m.Value.ID, own)
		if in, ok := m.Value.RangeOf(a); ok && !slices.Contains(own, a) {
			shown[i] += " of the range " + in.String()
			o = e.ranged(a, m.Value.ID, in)
		}
		switch {
		case o == nil:
		case o.refuses():
			return *o
		case undecided == nil:
			undecided = o
		}
	}
	if undecided != nil {
		return *undecided
	}
	return witness("%s assigned to machine %s (%s)", strings.Join(shown, ", "), m.Value.ID, m.Source)
}

// ranged returns nil if an address of one of this machine's ranges is not another machine's own. Others may have the
// same range: which of them has the address is nothing that the inventory knows.
func (e evaluation) ranged(asked, id string, in netip.Prefix) *outcome {
	o := pass("")
	switch owners := e.facts.Owners[asked]; {
	case owners.State != Known:
		o = waitFor(owners, "it is not known whether another machine has the address %s", asked)
	case slices.Contains(owners.Value, id):
		return nil
	case len(owners.Value) > 0:
		o = refuse("it may ask for the others of its range, "+in.String(),
			"the address %s is machine %s's own, and not machine %s's, in whose range it is", asked, strings.Join(owners.Value, ", "), id)
	default:
		o = wait("", "the inventory is changing: the address %s was in a range of machine %s a moment ago", asked, id)
	}
	return &o
}

// owned returns nil if one name or address is this machine's and nobody else's.
func (e evaluation) owned(what, asked, id string, own []string) *outcome {
	o := pass("")
	owners := e.facts.Owners[asked]
	others := slices.DeleteFunc(slices.Clone(owners.Value), func(o string) bool { return o == id })
	switch {
	case len(own) == 0:
		o = wait("it is being launched", "machine %s has no %s yet", id, what)
	case !slices.Contains(own, asked) && owners.State == Known && len(others) > 0:
		o = refuse("it may ask for "+strings.Join(own, ", "),
			"the %s %s is not assigned to machine %s but to machine %s", what, asked, id, strings.Join(others, ", "))
	case !slices.Contains(own, asked):
		o = wait("it may ask for "+strings.Join(own, ", ")+", or the inventory may change",
			"the %s %s is not assigned to machine %s, and no other machine is known to have it", what, asked, id)
		o.soon = owners.State == Unknown && owners.Soon
	case owners.State != Known:
		o = waitFor(owners, "it is not known whether another machine has the %s %s", what, asked)
	case len(others) > 0:
		o = wait("one of them must go", "the %s %s is assigned to machine %s, too", what, asked, strings.Join(others, ", "))
	case !slices.Contains(owners.Value, id):
		o = wait("", "the inventory is changing: the %s %s was machine %s's a moment ago", what, asked, id)
	default:
		return nil
	}
	return &o
}
