// SPDX-License-Identifier: Apache-2.0

package policy

// checkMachine wants a machine behind every node. If the machine is absent, perhaps not yet in the inventory, the
// request waits: waiting costs the least, and requests of deleted machines are deleted with them. The request does not
// wait if the certificate that the node serves with vouches for it. A machine that is being deleted is refused for
// good: its ID does not come back, and a certificate would outlive it.
func checkMachine(e evaluation) outcome {
	if !e.profile.Node {
		return notApplicable(notANode)
	}
	name := e.node
	if name == "" {
		return refuse("", "the request names no node")
	}
	m := e.facts.NodeMachine
	bound := e.who.machine()
	switch {
	case m.State == Unknown:
		return waitFor(m, "the machine of node %s is not known", name)
	case m.State == Absent && e.servesAlready():
		return notApplicable("no machine is node " + name + ", and the certificate that it serves with vouches for it")
	case m.State == Absent:
		return wait("it may yet appear in the inventory", "no machine is node %s", name)
	case m.Value.NodeName != name:
		return wait("", "the inventory answered about node %q when asked about %q", m.Value.NodeName, name)
	case m.Value.Deleting:
		return refuse("its group makes another", "machine %s is being deleted", m.Value.ID)
	case bound != "" && m.Value.ID != bound:
		return wait("", "node %s is machine %s, not %s, which the token was made for", name, m.Value.ID, bound)
	}
	return witness("node %s is machine %s (%s)", name, m.Value.ID, m.Source)
}
