// SPDX-License-Identifier: Apache-2.0

package policy

// checkUndecided leaves alone what is done. An approved request is not done: it waits for its signature, and the rules
// about its contents are asked again, because a person may have approved it and because facts may have changed.
func checkUndecided(e evaluation) outcome {
	switch e.request.Phase {
	case Pending:
		return pass("nobody has decided yet")
	case Approved:
		return pass("it is approved and waits for its signature")
	case Denied, Failed, Issued:
		return refuse("", "it is %s already", e.request.Phase)
	default:
		return refuse("", "its phase %q is not known here", e.request.Phase)
	}
}
