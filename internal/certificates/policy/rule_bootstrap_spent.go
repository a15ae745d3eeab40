// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/certificates/pki"

// checkBootstrapSpent refuses reuse of a bootstrap token once the node that it created holds a valid certificate: after
// the Node object was deleted, existing-node does not apply. To take a machine out and in again, an administrator makes
// a new token. Until the node has asked for a certificate as itself, the token may be used again: kubelets that lost
// the answer do so, with a new key each time, and another holder of the token could as well have asked first.
func checkBootstrapSpent(e evaluation) outcome {
	switch {
	case e.who.kind != bootstrap || e.request.SignerName != pki.SignerKubeletClient || !isBootstrapUser(e.request.Username):
		return notApplicable(notBootstrap)
	case e.request.ByPerson:
		return notApplicable(personApproved)
	}
	switch spent := e.facts.TokenSpent; {
	case spent.State != Known:
		return waitFor(spent, "it is not known whether node %s joined by this token", e.node)
	case spent.Value:
		return wait("make another token, or approve by hand", "node %s joined by this token, has asked for itself since, and its certificate is still valid", e.node)
	}
	return pass("node %s uses no certificate that this token got", e.node)
}
