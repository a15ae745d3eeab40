// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/hex"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
)

const joinAgain = "let it join again, or approve by hand"

// checkCredential requires that the client certificate of the requesting node was issued to the node's current machine.
// Without this rule a key that was copied from a machine stays usable forever: its holder renews, and when another
// machine takes over the node's name the holder gets certificates for its addresses, too. API servers from v1.32 on
// report the certificate. A certificate of an unknown machine, such as one from before the controller was installed, is
// accepted as long as no record shows that another machine took over the node.
func checkCredential(e evaluation) outcome {
	switch {
	case !e.profile.Node:
		return notApplicable(notANode)
	case e.who.kind != node:
		return notApplicable("the requester is not a node")
	case e.request.ByPerson:
		return notApplicable(personApproved)
	}
	if e.servesAlready() {
		return notApplicable("no machine is the node, so there is none to compare with")
	}
	_, told := e.request.credential()
	c, m := e.facts.Credential, e.facts.NodeMachine
	switch {
	case !told && e.policy.RequireCredential:
		return wait("let the node use a client certificate", "the API server does not report the client certificate of %s, and policy.credential.required is set", e.request.Username)
	case !told:
		return notApplicable("the API server reports no client certificate: the node has a token, or the API server is older than v1.32")
	case c.State != Known:
		return waitFor(c, "the machine that got the certificate of %s is not known", e.request.Username)
	case m.State != Known || m.Value.NodeName != e.node:
		return notApplicable("there is no machine to compare with; see the rule machine")
	}
	switch same, ok := c.Value.Machine.Same(RefOf(m)); {
	case ok && same:
		return witness("its certificate was issued to machine %s", m.Value.ID)
	case ok:
		_, id := c.Value.Machine.Split()
		return refuse("if it is the same machine, let it join again, or approve by hand",
			"the certificate that asks was issued to machine %s, and node %s is machine %s by now", id, e.node, m.Value.ID)
	case c.Value.Machine == "" && c.Value.Since.Before(m.Value.CertifiedFrom()) && !c.Value.Since.IsZero():
		return wait(joinAgain, "node %s is machine %s, which was made after the certificate that asks was issued, and to which one that was is on no record", e.node, m.Value.ID)
	case c.Value.Rejoined:
		return wait(joinAgain, "another certificate made a machine node %s since, and no record says which machine got the certificate that asks", e.node)
	case c.Value.Replaced || e.taken():
		return wait(joinAgain, "node %s was another machine before, and no record says which machine got the certificate that asks", e.node)
	}
	return pass("no record says which machine got its certificate, and node %s was never another machine", e.node)
}

// taken reports whether the inventory gave the name of the node to another machine, which has no certificate yet.
func (e evaluation) taken() bool {
	same, ok := e.facts.LastMachine.Value.Same(RefOf(e.facts.NodeMachine))
	return e.facts.LastMachine.State == Known && ok && !same
}

// GoesTo is the machine to put on record for a certificate, "" if nobody knows. That a node renews does not show
// that it is the machine that the inventory names by now: unless a person approved, it stays the one that it was.
func GoesTo(p Policy, r Request, f Facts) MachineRef {
	if f.NodeMachine.State != Known {
		return ""
	}
	last := f.LastMachine
	now := RefOf(f.NodeMachine)
	same, ok := last.Value.Same(now)
	if last.State == Known && ok && !same && !r.ByPerson && identify(p, r).kind == node {
		return last.Value
	}
	return now
}

// credentialID is what the API server writes about a client certificate (k8s.io/apiserver,
// pkg/authentication/request/x509).
const (
	credentialID     = "authentication.kubernetes.io/credential-id"
	credentialPrefix = "X509SHA256=" //nolint:gosec // G101: the beginning of a certificate's fingerprint
)

// credential is the fingerprint of the certificate that the requester used, false if the API server tells of none.
func (r Request) credential() (id pki.Fingerprint, ok bool) {
	return fingerprint(r.Extra[credentialID])
}

// CredentialOf is the fingerprint of the certificate that a request was made with, false if the API server tells of
// none.
func CredentialOf(csr *certificatesv1.CertificateSigningRequest) (id pki.Fingerprint, ok bool) {
	return fingerprint(csr.Spec.Extra[credentialID])
}

// CredentialAmong is the fingerprint of the certificate that a user showed, among what an API server says of the user;
// false if it tells of none.
func CredentialAmong[V ~[]string](extra map[string]V) (id pki.Fingerprint, ok bool) {
	return fingerprint(extra[credentialID])
}

func fingerprint(all []string) (id pki.Fingerprint, ok bool) {
	if len(all) != 1 {
		return id, false
	}
	text, ok := strings.CutPrefix(all[0], credentialPrefix)
	if !ok || len(text) != hex.EncodedLen(len(id)) {
		return id, false
	}
	n, err := hex.Decode(id[:], []byte(text))
	return id, err == nil && n == len(id)
}
