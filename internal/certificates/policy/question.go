// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"

	"muster.dev/muster/internal/certificates/pki"
)

// Question lists the facts that must be looked up before Decide.
type Question struct {
	// Machine is the ID of the machine that the bootstrap token names, "" if none.
	Machine string
	// Asker is the ID of the machine that asks: the one of the bootstrap token, or of the session of a role; "" if none
	// is told.
	Asker string
	// Node is the name of the node that the request is about, "" if none.
	Node string
	// Names and addresses that are asked for, in text.
	Names []string
	// Key is the public key of the request, zero if its owner does not matter.
	Key pki.Fingerprint
	// Nodes are those of the names that Node objects may have, beside Node.
	Nodes []string
	// Token is the user of a bootstrap token that asks, "" if the requester is not one.
	Token string
	// Credential is the fingerprint of the certificate that a node asks with, zero if the API server does not report
	// it.
	Credential pki.Fingerprint
	// Serving are addresses at which the node's kubelet is to be asked for the certificate that it serves with, if the
	// inventory knows no machine.
	Serving []netip.Addr
	// Access to be reviewed, nil if none.
	Access *Access
}

// Access is a SubjectAccessReview: may this requester create certificatesigningrequests/<Subresource>?
type Access struct {
	Username, UID string
	Groups        []string
	Extra         map[string][]string
	// Subresource is nodeclient, selfnodeclient or selfnodeserver.
	Subresource string
}

// Ask returns the facts that Decide will look at, so that nothing else need be looked up.
func Ask(p Policy, r Request) Question {
	profile, ok := p.Profile(r.SignerName)
	switch {
	case !ok, r.ParseError != nil, r.Phase != Pending && r.Phase != Approved:
		return Question{}
	case profile.Manual && r.Phase == Pending:
		return Question{} // it is left to a person, whatever the facts
	}
	q := Question{Names: canonicalNames(r.CSR.DNSNames()), Key: r.CSR.Fingerprint()}
	name := r.nodeName()
	for _, n := range q.Names {
		if n != name || !profile.Node {
			q.Nodes = append(q.Nodes, n)
		}
	}
	for _, a := range r.CSR.Addresses() {
		q.Names = append(q.Names, a.String())
	}
	if !profile.Node {
		return q
	}
	who := identify(p, r)
	q.Node, q.Machine, q.Asker = name, who.machine(), asker(r, who)
	switch {
	case who.kind == bootstrap && isBootstrapUser(r.Username):
		q.Token = r.Username
	case who.kind == node:
		q.Credential, _ = r.credential()
	}
	if e := (evaluation{policy: p, profile: profile, request: r, node: name, who: who}); e.mayRenewByServing() && checkAddressesReserved(e).passes() {
		q.Serving = r.CSR.Addresses()
	}
	if sub := subresource(r, who); sub != "" && r.Phase == Pending {
		q.Access = &Access{Username: r.Username, UID: r.UID, Groups: r.Groups, Extra: r.Extra, Subresource: sub}
	}
	return q
}

// ApprovalMessage is what an approval says: upstream's words for client certificates
// (pkg/controller/certificates/approver/sarapprove.go), EKS's for serving certificates.
func ApprovalMessage(r Request) string {
	switch subresource(r, identify(Policy{}, r)) {
	case "selfnodeserver":
		return "Auto approving self kubelet server certificate after SubjectAccessReview."
	case "selfnodeclient":
		return "Auto approving self kubelet client certificate after SubjectAccessReview."
	default:
		return "Auto approving kubelet client certificate after SubjectAccessReview."
	}
}
