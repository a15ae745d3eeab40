// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/pki"

// checkRequester asks whether anything here can vouch for who asks. It does not deny: a person or another approver may know
// more. Once somebody has approved, that stands in for this rule and the access review.
func checkRequester(e evaluation) outcome {
	switch {
	case !e.profile.Node:
		return notApplicable(notANode)
	case subresource(e.request, e.who) != "":
		return pass("%s", e.request.Username)
	case e.request.Phase == Approved:
		return notApplicable("somebody approved it")
	case e.who.kind == unbound:
		return refuse(byHand, "the bootstrap token of %s is good for no machine: %s", e.request.Username, e.who.why)
	case e.who.kind == bootstrap && e.request.SignerName == pki.SignerKubeletServing:
		return refuse("the node must ask, with its client certificate", "%s asks for a serving certificate", e.request.Username)
	default:
		return refuse(byHand, "%s is neither a node nor a bootstrap token", e.request.Username)
	}
}
