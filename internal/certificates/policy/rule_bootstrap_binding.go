// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/certificates/token"
)

// checkBootstrapBinding refuses a bootstrap token outside of what the policy binds its groups to. It is for tokens that
// others make, such as kubeadm's, which say nothing about machines themselves.
func checkBootstrapBinding(e evaluation) outcome {
	switch {
	case e.who.kind != bootstrap:
		return notApplicable(notBootstrap)
	case len(e.who.bindings) == 0:
		return notApplicable("the policy binds none of its groups")
	}
	var undecided *outcome
	var fits []string
	for _, group := range e.bound() {
		o := e.fitsAny(group)
		switch {
		case o.refuses():
			return o
		case !o.passes() && undecided == nil:
			undecided = &o
		}
		fits = append(fits, group)
	}
	if undecided != nil {
		return *undecided
	}
	return witness("within what is bound to %s", strings.Join(fits, ", "))
}

// bound is the subject of the bindings: the groups of a token, or a user.
func (e evaluation) bound() []string {
	var all []string
	for _, b := range e.who.bindings {
		if !slices.Contains(all, b.who()) {
			all = append(all, b.who())
		}
	}
	return all
}

// fitsAny asks for one binding of the group or user that fits. A binding that may yet fit is better than one that never
// will.
func (e evaluation) fitsAny(who string) outcome {
	worst := refuse("", "nothing is bound to %s", who)
	for _, b := range e.who.bindings {
		if b.who() != who {
			continue
		}
		o := e.fits(b)
		if o.passes() {
			return o
		}
		if !o.refuses() || worst.refuses() {
			worst = o
		}
	}
	return worst
}

func (e evaluation) fits(b Binding) outcome {
	name := e.node
	if len(b.NodeNames) > 0 && !slices.ContainsFunc(b.NodeNames, func(p string) bool { return token.MatchName(p, name) }) {
		return refuse("", "%s is good for nodes called %s, not %s", b.who(), strings.Join(b.NodeNames, ", "), name)
	}
	if len(b.MachineGroups) == 0 {
		return pass("")
	}
	m, unknown := e.machineOfNode()
	switch {
	case unknown != nil:
		return *unknown
	case m.Group == "":
		return wait("use a source that knows groups, or bind to names", "the group of machine %s is not in the inventory", m.ID)
	case !slices.Contains(b.MachineGroups, m.Group):
		return refuse("", "%s is good for groups %s, and machine %s is in group %s", b.who(), strings.Join(b.MachineGroups, ", "), m.ID, m.Group)
	}
	return pass("group %s", m.Group)
}
