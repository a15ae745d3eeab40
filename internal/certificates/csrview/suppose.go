// SPDX-License-Identifier: Apache-2.0

package csrview

import (
	"slices"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// Assumptions stand in for the facts that the certificate controller would gather.
type Assumptions struct {
	// Machines that there are. Nil means that nothing is known about machines.
	Machines []policy.Machine
	// NodeExists assumes a Node object of the name.
	NodeExists bool
	// AccessRefused assumes that RBAC does not allow the requester to ask.
	AccessRefused bool
}

const assumed = "assumption"

// Suppose makes the facts that a question asks for out of assumptions. Keys are assumed to be new, nodes to have had no
// certificate before, and names of others not to be a node's.
func Suppose(q policy.Question, a Assumptions, now time.Time) policy.Facts {
	f := policy.Facts{
		Elsewhere:   policy.None[string](assumed, now),
		Node:        policy.Know(a.NodeExists, assumed, now),
		LastMachine: policy.None[policy.MachineRef](assumed, now),
		Expired:     policy.None[bool](assumed, now),
		Credential:  policy.Know(policy.Credential{}, assumed, now),
		TokenSpent:  policy.Know(false, assumed, now),
		Nodes:       map[string]policy.Fact[bool]{},
		KeyOwner:    policy.None[string](assumed, now),
		Access:      policy.Know(!a.AccessRefused, assumed, now),
		Owners:      map[string]policy.Fact[[]string]{},
	}
	find := func(is func(policy.Machine) bool) policy.Fact[policy.Machine] {
		if a.Machines == nil {
			return policy.DontKnow[policy.Machine](assumed, "no inventory was given")
		}
		if i := slices.IndexFunc(a.Machines, is); i >= 0 {
			return policy.Know(a.Machines[i], assumed, now)
		}
		return policy.None[policy.Machine](assumed, now)
	}
	if q.Machine != "" {
		f.TokenMachine = find(func(m policy.Machine) bool { return m.ID == q.Machine })
	}
	if q.Node != "" {
		f.NodeMachine = find(func(m policy.Machine) bool { return m.NodeName == q.Node })
	}
	for _, name := range q.Nodes {
		f.Nodes[name] = policy.Know(false, assumed, now)
	}
	for _, name := range q.Names {
		if a.Machines == nil {
			f.Owners[name] = policy.DontKnow[[]string](assumed, "no inventory was given")
			continue
		}
		f.Owners[name] = policy.Know(policy.OwnersOf(name, a.Machines), assumed, now)
	}
	return f
}
