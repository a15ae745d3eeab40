// SPDX-License-Identifier: Apache-2.0

package policy

// checkAccessReview asks what upstream's approver asks, so that the same RBAC switches approval on and off. A no makes
// the request wait: somebody may yet bind the role, and upstream retries as well.
func checkAccessReview(e evaluation) outcome {
	if e.request.Phase == Approved {
		return notApplicable("it is approved already")
	}
	sub := subresource(e.request, e.who)
	if sub == "" {
		return notApplicable("no rule vouches for the requester")
	}
	a := e.facts.Access
	switch {
	case a.State != Known:
		return waitFor(a, "it is not known whether %s may create certificatesigningrequests/%s", e.request.Username, sub)
	case !a.Value:
		return wait("bind a role that allows it to one of its groups", "%s may not create certificatesigningrequests/%s in group certificates.k8s.io",
			e.request.Username, sub)
	}
	return pass("%s may create certificatesigningrequests/%s", e.request.Username, sub)
}
