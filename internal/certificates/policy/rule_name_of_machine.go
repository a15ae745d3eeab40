// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// checkNamesOfMachines keeps names and addresses of machines out of certificates that are not for their kubelets: the
// API server would take the holder for the node. It is for signers that know nothing of machines; the kubelet's have
// name-assigned and address-assigned.
func checkNamesOfMachines(e evaluation) outcome {
	names := canonicalNames(e.request.CSR.DNSNames())
	switch {
	case e.profile.Node:
		return notApplicable("a node's names are judged by the rules about nodes")
	case len(names)+len(e.request.CSR.Addresses()) == 0:
		return notApplicable("no names and no addresses")
	case e.undecidedByPeople():
		return notApplicable(onceApproved)
	}
	var undecided *outcome
	note := func(o outcome) {
		if undecided == nil {
			undecided = &o
		}
	}
	for _, n := range names {
		switch isNode := e.facts.Nodes[n]; {
		case isNode.State == Unknown:
			note(waitFor(isNode, "it is not known whether there is a node %s", n))
		case isNode.State == Known && isNode.Value:
			return refuse("ask for names of its own", "%s is the name of a node", n)
		}
	}
	for _, a := range e.request.CSR.Addresses() {
		names = append(names, a.String())
	}
	for _, n := range names {
		switch owners := e.facts.Owners[n]; {
		case owners.State == Known && len(owners.Value) > 0:
			return refuse("ask for names of its own", "%s is machine %s's", n, strings.Join(owners.Value, ", "))
		case owners.State == Unknown:
			note(waitFor(owners, "it is not known whether a machine has %s", n))
		}
	}
	if undecided != nil {
		return *undecided
	}
	return pass("no machine has any of them")
}
