// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/certificates/pki"

// checkBootstrapSpent keeps a token that has made a machine a node from making anybody else the same node while that certificate is
// good: after the Node object was deleted existing-node has nothing to say. Whoever takes a machine out and in again makes a token for
// that, which is his fresh word. As long as the node has not spoken for itself it may ask again: kubelets that lost the answer do so,
// with a new key each time, and whoever else has the token could as well have asked first.
func checkBootstrapSpent(e evaluation) outcome {
	switch {
	case e.who.kind != bootstrap || e.request.SignerName != pki.SignerKubeletClient || !isBootstrapUser(e.request.Username):
		return notApplicable(notBootstrap)
	case e.request.ByPerson:
		return notApplicable(personApproved)
	}
	switch spent := e.facts.TokenSpent; {
	case spent.State != Known:
		return waitFor(spent, "whether node %s came in by this token is not known", e.node)
	case spent.Value:
		return wait("make another token, or approve by hand", "node %s came in by this token, has asked for itself since, and its certificate is still good", e.node)
	}
	return pass("no certificate that node %s uses was got by this token", e.node)
}
