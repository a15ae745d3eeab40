// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"muster.dev/muster/internal/pki"
)

const freeTheName = "delete the Node if its machine is gone, or approve by hand"

// checkExistingNode keeps the name of a node that exists from whoever is not that node, as a bootstrap token makes its holder
// any node that it is good for: with upstream's approver, every node there is. A name may change hands when the inventory says
// that another machine has it by now, or when a person approved. An approval by upstream's approver is not one by a person.
func checkExistingNode(e evaluation) outcome {
	switch {
	case e.request.SignerName != pki.SignerKubeletClient || !e.profile.Node:
		return notApplicable("it is not about the identity of a node")
	case e.who.kind == node:
		return notApplicable("a node asks for itself")
	case e.request.Phase == Approved && !e.request.AutoApproved:
		return notApplicable("a person approved it")
	}
	exists, last, m := e.facts.Node, e.facts.LastMachine, e.facts.NodeMachine
	name := e.node
	switch {
	case exists.State == Unknown:
		return waitFor(exists, "whether node %s exists is not known", name)
	case exists.State == Absent || !exists.Value:
		return pass("there is no node %s", name)
	case last.State == Unknown:
		return waitFor(last, "node %s exists, and which machine it was is not known", name)
	case last.State == Absent || last.Value == "":
		return wait(freeTheName, "node %s exists, and which machine got its certificate is on no record", name)
	case m.State == Unknown:
		return waitFor(m, "node %s exists, and which machine it is now is not known", name)
	case m.State == Absent || m.Value.ID == "" || m.Value.NodeName != name:
		return wait(freeTheName, "node %s exists, and no machine has replaced it", name)
	}
	source, id := readMachineRef(last.Value)
	switch {
	case source != "" && source != m.Source:
		return wait(freeTheName, "node %s exists as machine %s of %s, which cannot be compared with machine %s of %s", name, id, source, m.Value.ID, m.Source)
	case m.Value.ID == id:
		return wait(freeTheName, "node %s exists, and is still machine %s, which has a certificate", name, id)
	}
	return witness("machine %s replaces %s as node %s", m.Value.ID, id, name)
}

// MachineRef is how a machine should be put on record, to be given back as Facts.LastMachine: with the source that says so. The
// same machine may have another ID in another source, and must not be taken for a new one when the first source fails.
func MachineRef(m Fact[Machine]) string { return m.Source + "|" + m.Value.ID }

// readMachineRef returns no source for what is an ID alone.
func readMachineRef(ref string) (source, id string) {
	if source, id, ok := strings.Cut(ref, "|"); ok {
		return source, id
	}
	return "", ref
}
