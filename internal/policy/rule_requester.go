// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/pki"

// checkRequester asks whether anything here can vouch for who asks. It does not deny: a person or another approver may know
// more. Once somebody has approved, that stands in for this rule, and only for this and the access review.
func checkRequester(e evaluation) outcome {
	if subresource(e.request, e.who) != "" {
		return pass("%s", e.request.Username)
	}
	if e.request.Phase == Approved {
		return notApplicable("somebody approved it")
	}
	const byHand = "look at it, then kubectl certificate approve or deny it"
	switch {
	case e.who.kind == unbound && e.who.groups == 0:
		return refuse(byHand, "the bootstrap token of %s was made for no machine", e.request.Username)
	case e.who.kind == unbound:
		return refuse(byHand, "the bootstrap token of %s names %d machines", e.request.Username, e.who.groups)
	case e.who.kind == bootstrap && e.request.SignerName == pki.SignerKubeletServing:
		return refuse("the node must ask, with its client certificate", "%s asks for a serving certificate", e.request.Username)
	default:
		return refuse(byHand, "%s is neither a node nor a bootstrap token", e.request.Username)
	}
}
