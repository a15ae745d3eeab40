// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/certificates/pki"

// checkRequester asks whether anything here can vouch for who asks. It does not deny: a person may know more, and an approval by one
// stands in for this rule. One by a program does not, as upstream's approver looks at no name. Nobody stands in for what was meant to
// bind a token.
func checkRequester(e evaluation) outcome {
	switch {
	case !e.profile.Node:
		return notApplicable(notANode)
	case subresource(e.request, e.who) != "":
		return pass("%s", e.request.Username)
	case e.who.kind == garbled:
		return refuse("make a token anew", "nobody can tell what the bootstrap token of %s is good for: %s", e.request.Username, e.who.why)
	case e.request.ByPerson:
		return notApplicable(personApproved)
	case e.who.kind == unbound:
		return refuse(byHand, "the bootstrap token of %s is good for no machine: %s", e.request.Username, e.who.why)
	case e.who.kind == bootstrap && e.request.SignerName == pki.SignerKubeletServing:
		return refuse("the node must ask, with its client certificate", "%s asks for a serving certificate", e.request.Username)
	default:
		return refuse(byHand, "%s is neither a node nor a bootstrap token", e.request.Username)
	}
}
