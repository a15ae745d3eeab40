// SPDX-License-Identifier: Apache-2.0

package policy

const byHand = "look at it, then kubectl certificate approve or deny it"

// checkManualApproval leaves to people what no fact can vouch for: they know which requester may be which user. The
// other rules still run, and say what would come of an approval.
func checkManualApproval(e evaluation) outcome {
	switch {
	case !e.profile.Manual:
		return notApplicable("requests for this signer are judged by facts")
	case e.request.Phase != Approved:
		return refuse(byHand, "requests for %s are for people to approve", e.request.SignerName)
	}
	return pass("somebody approved it")
}

// undecidedByPeople tells that facts are not gathered yet, because a person has to speak first.
func (e evaluation) undecidedByPeople() bool {
	return e.profile.Manual && e.request.Phase != Approved
}

const onceApproved = "it is looked up once somebody has approved the request"
