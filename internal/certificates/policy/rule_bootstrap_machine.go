// SPDX-License-Identifier: Apache-2.0

package policy

// checkBootstrapMachine refuses a bootstrap token that is used for another machine than the one it was made for.
// Everywhere else a stolen token can become any node.
func checkBootstrapMachine(e evaluation) outcome {
	id := e.who.machine()
	switch {
	case e.who.kind != bootstrap:
		return notApplicable(notBootstrap)
	case id == "":
		return notApplicable("the token names no machine")
	}
	m := e.facts.TokenMachine
	switch {
	case m.State == Unknown:
		return waitFor(m, "it is not known whether machine %s exists", id)
	case m.State == Absent:
		return wait("it may yet appear in the inventory", "the token was made for machine %s, which does not exist", id)
	case m.Value.ID != id:
		return wait("", "the inventory answered about machine %s when asked about %s", m.Value.ID, id)
	case m.Value.Deleting:
		return refuse("its group makes another", "machine %s is being deleted", m.Value.ID)
	case m.Value.NodeName == "":
		return wait("it is being launched", "machine %s has no node name yet", m.Value.ID)
	case m.Value.NodeName != e.node:
		return refuse("a token is good for one machine", "the token was made for machine %s, which is node %s, not %s",
			m.Value.ID, m.Value.NodeName, e.node)
	}
	return pass("the token was made for machine %s, which is node %s", m.Value.ID, m.Value.NodeName)
}
