// SPDX-License-Identifier: Apache-2.0

package policy

// checkBootstrapMachine refuses a bootstrap token that is used for another machine than the one it was made for. Everywhere
// else a stolen token can become any node.
func checkBootstrapMachine(e evaluation) outcome {
	if e.who.kind != bootstrap {
		return notApplicable("the requester is not a machine's bootstrap token")
	}
	m := e.facts.TokenMachine
	switch {
	case m.State == Unknown:
		return wait("", "whether machine %s exists is not known: %s", e.who.machine, m.why())
	case m.State == Absent:
		return wait("it may yet appear in the inventory", "the token was made for machine %s, which does not exist", e.who.machine)
	case m.Value.ID != e.who.machine:
		return wait("", "the inventory answered about machine %s when asked about %s", m.Value.ID, e.who.machine)
	case m.Value.Deleting:
		return refuse("its group makes another", "machine %s is being deleted", m.Value.ID)
	case m.Value.NodeName == "":
		return wait("it is being launched", "machine %s has no node name yet", m.Value.ID)
	case m.Value.NodeName != e.request.nodeName():
		return refuse("a token is good for one machine", "the token was made for machine %s, which is node %s, not %s",
			m.Value.ID, m.Value.NodeName, e.request.nodeName())
	}
	return pass("the token was made for machine %s, which is node %s", m.Value.ID, m.Value.NodeName)
}
