// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/certificates/pki"

// checkRequester asks whether anything here can vouch for the requester. A request that it refuses is ignored and not
// denied: a person may know more, so a person's approval replaces this rule. A program's approval does not, because
// upstream's approver looks at no name. No approval replaces a token's scope that cannot be read.
func checkRequester(e evaluation) outcome {
	switch {
	case !e.profile.Node:
		return notApplicable(notANode)
	case subresource(e.request, e.who) != "":
		return pass("%s", e.request.Username)
	case e.who.kind == garbled:
		return refuse("make a token anew", "the scope of the bootstrap token of %s cannot be read: %s", e.request.Username, e.who.why)
	case e.request.ByPerson:
		return notApplicable(personApproved)
	case e.who.kind == unbound:
		return refuse(byHand, "the bootstrap token of %s is not valid for any machine: %s", e.request.Username, e.who.why)
	case e.who.kind == bootstrap && e.request.SignerName == pki.SignerKubeletServing:
		return refuse("the node must ask, with its client certificate", "%s asks for a serving certificate", e.request.Username)
	default:
		return refuse(byHand, "%s is neither a node nor a bootstrap token", e.request.Username)
	}
}
