// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/token"
)

const freeTheName = "delete the Node if its machine is gone, approve by hand, or if its certificate has expired let it join by a token of muster token create --rejoin"

// checkExistingNode keeps the name of an existing node from every other machine, as the holder of a bootstrap token can
// become any node that the token is valid for: with upstream's approver, every node there is. A name may change hands
// when the inventory says that another machine has it by now, or when a person approved. An approval by upstream's
// approver is not one by a person. A person may say so beforehand, with a token for this very node to join again: that
// works once its certificate has expired.
func checkExistingNode(e evaluation) outcome {
	switch {
	case e.request.SignerName != pki.SignerKubeletClient || !e.profile.Node:
		return notApplicable("it is not about the identity of a node")
	case e.who.kind == node:
		return notApplicable("a node asks for itself")
	case e.who.rejoins() != "" && e.who.rejoins() != e.node:
		return refuse("make a token for this node", "the token was made for node %s to join again, not for %s", e.who.rejoins(), e.node)
	case e.request.ByPerson:
		return notApplicable(personApproved)
	}
	exists, last, m := e.facts.Node, e.facts.LastMachine, e.facts.NodeMachine
	name := e.node
	switch {
	case exists.State == Unknown:
		return waitFor(exists, "it is not known whether node %s exists", name)
	case exists.State == Absent || !exists.Value:
		return pass("there is no node %s", name)
	case e.who.rejoins() != "":
		return e.mayRejoin(name)
	case last.State == Unknown:
		return waitFor(last, "node %s exists, and its last machine is not known", name)
	case last.State == Absent || last.Value == "":
		return wait(freeTheName, "node %s exists, and no record says which machine got its certificate", name)
	case m.State == Unknown:
		return waitFor(m, "node %s exists, and its current machine is not known", name)
	case m.State == Absent || m.Value.ID == "" || m.Value.NodeName != name:
		return wait(freeTheName, "node %s exists, and no machine has replaced it", name)
	}
	source, id := last.Value.Split()
	switch same, ok := last.Value.Same(RefOf(m)); {
	case !ok:
		return wait(freeTheName, "node %s exists as machine %s of %s, which cannot be compared with machine %s of %s", name, id, source, m.Value.ID, m.Source)
	case same:
		return wait(freeTheName, "node %s exists, and is still machine %s, which has a certificate", name, id)
	}
	return witness("machine %s replaces %s as node %s", m.Value.ID, id, name)
}

// rejoins is the node that a bootstrap token was made for to join again, "" if it was not.
func (q requester) rejoins() string { return q.scopes[token.ScopeRejoin] }

// mayRejoin holds such a token against the record: while the node can speak for itself, nobody else does.
func (e evaluation) mayRejoin(name string) outcome {
	switch expired := e.facts.Expired; {
	case expired.State == Unknown:
		return waitFor(expired, "node %s exists, and it is not known whether its certificate has expired", name)
	case expired.State == Absent:
		return wait(freeTheName, "node %s exists, and no certificate of it is on record, so it is not known whether it has expired", name)
	case !expired.Value:
		return wait(freeTheName, "node %s exists, and has a certificate that is still valid", name)
	}
	return witness("the token was made for node %s to join again, and its certificate has expired", name)
}
