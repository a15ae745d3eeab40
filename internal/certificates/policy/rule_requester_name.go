// SPDX-License-Identifier: Apache-2.0

package policy

// checkRequesterName refuses a node that asks in another's name, also when somebody approved it: the NodeRestriction
// admission plugin does the same, where it is on.
func checkRequesterName(e evaluation) outcome {
	switch {
	case !e.profile.Node:
		return notApplicable(notANode)
	case e.who.kind != node:
		return notApplicable("the requester is not a node")
	case e.request.Username != e.request.CSR.CommonName():
		return refuse("a node may only ask for itself", "%s asks for %s", e.request.Username, e.request.CSR.CommonName())
	}
	return pass("a node asks for itself")
}
