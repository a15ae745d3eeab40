// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	v1alpha1 "muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/pki"
)

const (
	bootstrapUserPrefix = "system:bootstrap:"
	bootstrappersGroup  = "system:bootstrappers"
)

// kind of requester.
type kind int

const (
	stranger  kind = iota // a person, a service account: nobody that the rules vouch for
	node                  // a node, by its client certificate
	bootstrap             // a bootstrap token that was made for one machine
	unbound               // a bootstrap token that was made for no machine, or for several
)

// requester is what the API server says about who asks.
type requester struct {
	kind    kind
	machine string // the ID of the machine that a bootstrap token was made for
	groups  int    // how many machines it names
}

// identify sorts the requester by user name and groups, both of which only the API server writes.
func identify(r Request) requester {
	switch {
	case strings.HasPrefix(r.Username, nodeUserPrefix) && slices.Contains(r.Groups, nodesGroup):
		return requester{kind: node}
	case isBootstrapUser(r.Username) && slices.Contains(r.Groups, bootstrappersGroup):
		var machines []string
		for _, g := range r.Groups {
			if id, ok := strings.CutPrefix(g, v1alpha1.BootstrapGroupPrefix); ok {
				machines = append(machines, id)
			}
		}
		if len(machines) != 1 || machines[0] == "" {
			return requester{kind: unbound, groups: len(machines)}
		}
		return requester{kind: bootstrap, machine: machines[0], groups: 1}
	default:
		return requester{kind: stranger}
	}
}

// The user name that the API server gives to a bootstrap token: its public half.
func isBootstrapUser(name string) bool {
	id, ok := strings.CutPrefix(name, bootstrapUserPrefix)
	return ok && len(id) == 6 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Question is what must be found out before Decide.
type Question struct {
	// Machine is the ID of the machine that the bootstrap token names, "" if none.
	Machine string
	// Node is the name of the node that the request is about, "" if none.
	Node string
	// Names and addresses that are asked for, in text.
	Names []string
	// Key is the public key of the request, zero if it could not be read.
	Key pki.Fingerprint
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

// Ask tells which facts Decide will look at, so that nothing else need be gathered.
func Ask(r Request) Question {
	if _, ok := pki.ProfileFor(r.SignerName); !ok || r.ParseError != nil || r.Phase != Pending && r.Phase != Approved {
		return Question{}
	}
	who := identify(r)
	q := Question{Machine: who.machine, Node: r.nodeName(), Names: r.CSR.DNSNames(), Key: r.CSR.Fingerprint()}
	for _, a := range r.CSR.Addresses() {
		q.Names = append(q.Names, a.String())
	}
	if sub := subresource(r, who); sub != "" && r.Phase == Pending {
		q.Access = &Access{Username: r.Username, UID: r.UID, Groups: r.Groups, Extra: r.Extra, Subresource: sub}
	}
	return q
}

// subresource whose creation the requester must be allowed: "" if no rule vouches for it.
func subresource(r Request, who requester) string {
	switch {
	case who.kind == node && r.SignerName == pki.SignerKubeletServing:
		return "selfnodeserver"
	case who.kind == node && r.SignerName == pki.SignerKubeletClient:
		return "selfnodeclient"
	case who.kind == bootstrap && r.SignerName == pki.SignerKubeletClient:
		return "nodeclient"
	default:
		return ""
	}
}

// ApprovalMessage is what an approval says: upstream's words for client certificates
// (pkg/controller/certificates/approver/sarapprove.go), EKS's for serving certificates.
func ApprovalMessage(r Request) string {
	switch subresource(r, identify(r)) {
	case "selfnodeserver":
		return "Auto approving self kubelet server certificate after SubjectAccessReview."
	case "selfnodeclient":
		return "Auto approving self kubelet client certificate after SubjectAccessReview."
	default:
		return "Auto approving kubelet client certificate after SubjectAccessReview."
	}
}
