// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/certificates/token"

// checkBootstrapGroup refuses a bootstrap token that is used for a machine of another group than it was made for. Which
// group a machine belongs to is for the inventory to say; a source that knows no groups makes it wait, as another may
// know.
func checkBootstrapGroup(e evaluation) outcome {
	group, ok := e.who.scopes[token.ScopeGroup]
	switch {
	case e.who.kind != bootstrap:
		return notApplicable(notBootstrap)
	case !ok:
		return notApplicable("the token names no group of machines")
	}
	m, unknown := e.machineOfNode()
	switch {
	case unknown != nil:
		return *unknown
	case m.Group == "":
		return wait("use a source that knows groups, or bind the token to names", "the group of machine %s is not in the inventory", m.ID)
	case m.Group != group:
		return refuse("make a token for this group", "the token was made for group %s, and machine %s is in group %s", group, m.ID, m.Group)
	}
	return pass("the token was made for group %s, as machine %s is in", group, m.ID)
}

// machineOfNode is the machine that a token's holder wants to be, or why that cannot be told.
func (e evaluation) machineOfNode() (Machine, *outcome) {
	m := e.facts.NodeMachine
	name := e.node
	var o outcome
	switch {
	case m.State == Unknown:
		o = waitFor(m, "the machine of node %s is not known", name)
	case m.State == Absent, name == "", m.Value.NodeName != name:
		o = wait("it may yet appear in the inventory", "no machine is node %s", name)
	default:
		return m.Value, nil
	}
	return Machine{}, &o
}
