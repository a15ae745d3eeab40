// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/token"
)

// Use is a certificate that a node got by a token.
type Use struct {
	Node    string
	At      time.Time
	Request string // name of the request
}

// nodePrefix begins the common name of a node's certificate.
const nodePrefix = "system:node:"

// slack is how much earlier than its token a certificate may seem to have been asked for: API servers keep whole
// seconds.
const slack = time.Second

// UsesOf finds the uses of a token, oldest first: in the register of issued certificates, and in requests that are
// still there, which are all there is in clusters without the register.
func UsesOf(l Listed, entries []issued.Entry, requests []certificatesv1.CertificateSigningRequest) []Use {
	user := token.UserPrefix + l.Token.ID
	var uses []Use
	seen := map[string]bool{}
	add := func(uid string, u Use) {
		// A token of this ID may have been there before: the certificates got by it are not this one's.
		if u.Node != "" && !seen[uid] && !u.At.Before(l.Created.Add(-slack)) {
			seen[uid] = true
			uses = append(uses, u)
		}
	}
	for _, r := range requests {
		if r.Spec.Username == user && r.Spec.SignerName == pki.SignerKubeletClient && len(r.Status.Certificate) > 0 {
			add(string(r.UID), Use{Node: nodeOf(r.Spec.Request), At: r.CreationTimestamp.Time, Request: r.Name})
		}
	}
	for _, e := range entries {
		if e.Requester == user && e.Signer == pki.SignerKubeletClient {
			add(e.UID, Use{Node: e.Node, At: e.NotBefore.Add(pki.Backdate), Request: e.CSR})
		}
	}
	slices.SortStableFunc(uses, func(a, b Use) int { return a.At.Compare(b.At) })
	return uses
}

// nodeOf is the node that a request asks for, "" if it is not a node's.
func nodeOf(request []byte) string {
	csr, err := pki.Parse(request)
	if err != nil {
		return ""
	}
	if node, ok := strings.CutPrefix(csr.CommonName(), nodePrefix); ok {
		return node
	}
	return ""
}
