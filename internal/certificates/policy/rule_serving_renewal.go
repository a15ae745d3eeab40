// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"
	"strings"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/platform/decision"
)

// Serving is the certificate that a kubelet serves with: good by now, signed by the cluster's authority for kubelets,
// and shown by the server at an address that is in it.
type Serving struct {
	Node      string // that its subject names
	Names     []string
	Addresses []netip.Addr
	Asked     netip.Addr // where it was shown
}

// checkServingRenewal lets a node go on serving under the names that it serves under, where no inventory knows its
// machine: the kubelet that answers at one of the addresses has a certificate for exactly these names and its key. The
// inventory has the say wherever it knows the machine or cannot tell, and a first certificate is for a person to
// approve. Nothing here is final: the kubelet may answer, or the names change.
func checkServingRenewal(e evaluation) outcome {
	switch {
	case !e.policy.ServingRenewal:
		return notApplicable("the policy lets no certificate vouch for another")
	case !e.mayRenewByServing():
		return notApplicable("no node asks for its serving certificate")
	case e.facts.NodeMachine.State != Absent:
		return notApplicable("the inventory decides")
	case len(e.request.CSR.Addresses()) == 0:
		return wait(approveFirst, "it asks for no address at which its kubelet could be asked")
	}
	s := e.facts.Serving
	switch {
	case s.State != Known:
		return waitFor(s, "the serving certificate of the kubelet of node %s is not known", e.node)
	case s.Value.Node != e.node:
		return wait(approveFirst, "the kubelet at %s is that of node %s", s.Value.Asked, s.Value.Node)
	case !slices.Contains(e.request.CSR.Addresses(), s.Value.Asked):
		return wait("", "the kubelet was asked at %s, which is not asked for", s.Value.Asked)
	case !sameSet(canonicalNames(e.request.CSR.DNSNames()), canonicalNames(s.Value.Names)) || !sameSet(texts(e.request.CSR.Addresses()), texts(s.Value.Addresses)):
		return wait(approveFirst, "the kubelet serves under %s, and asks for %s",
			strings.Join(slices.Concat(s.Value.Names, texts(s.Value.Addresses)), ", "), strings.Join(slices.Concat(e.request.CSR.DNSNames(), texts(e.request.CSR.Addresses())), ", "))
	}
	return witness("the kubelet at %s serves under the same names already", s.Value.Asked)
}

const approveFirst = "approve it by hand: a first certificate, and one for other names, is for a person"

// mayRenewByServing reports whether the rule is about the request, as far as that shows without any fact.
func (e evaluation) mayRenewByServing() bool {
	return e.policy.ServingRenewal && e.request.SignerName == pki.SignerKubeletServing && e.who.kind == node && checkRequesterName(e).passes()
}

// servesAlready reports whether the certificate that the node serves with vouches for this one.
func (e evaluation) servesAlready() bool { return checkServingRenewal(e).outcome == decision.Pass }

// unowned keeps names and addresses that the inventory knows to be some machine's from nodes that are none of them.
func (e evaluation) unowned(what string, asked []string) outcome {
	for _, a := range asked {
		switch owners := e.facts.Owners[a]; {
		case owners.State == Known && len(owners.Value) > 0:
			return refuse("", "the %s %s is machine %s's", what, a, strings.Join(owners.Value, ", "))
		case owners.State == Unknown:
			return waitFor(owners, "it is not known whether a machine has the %s %s", what, a)
		}
		if isNode := e.facts.Nodes[a]; what != "address" && a != e.node {
			switch {
			case isNode.State == Unknown:
				return waitFor(isNode, "it is not known whether there is a node %s", a)
			case isNode.State == Known && isNode.Value:
				return wait("delete that Node", "%s is the name of another node", a)
			}
		}
	}
	return notApplicable("the certificate that the node serves with vouches for it, and no machine has any of them")
}

func texts(addresses []netip.Addr) []string {
	var all []string
	for _, a := range addresses {
		all = append(all, a.Unmap().String())
	}
	return all
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}
