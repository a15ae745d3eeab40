// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// createdSkew is how much a request may seem to be older than its machine, as the clocks of the API server and of the
// inventory differ.
const createdSkew = time.Minute

// checkBootstrapWindow requires a first certificate to be requested soon after the machine was made, as machines do by
// themselves. A token that is found later is not valid for machines that are older, and a request that waited for a
// name before there was a machine is nobody's. It counts when a request was made, not when it is judged: a request in
// time is not refused because the inventory is slow.
func checkBootstrapWindow(e evaluation) outcome {
	window := e.policy.Bootstrap.Window
	switch {
	case e.who.kind != bootstrap:
		return notApplicable(notBootstrap)
	case window <= 0:
		return notApplicable("the policy sets no window")
	case e.request.ByPerson:
		return notApplicable(personApproved)
	case e.who.rejoins() != "":
		return notApplicable("the token was made for a node to join again")
	}
	m, unknown := e.machineOfNode()
	asked := e.request.Created
	switch {
	case unknown != nil:
		return *unknown
	case m.Created.IsZero():
		return wait("let the inventory say it, or approve by hand", "the inventory does not say when machine %s was made, and the policy wants requests within %s of that", m.ID, window)
	case asked.IsZero():
		return wait("", "the time of the request is not known")
	case asked.Before(m.Created.Add(-createdSkew)):
		return wait("let the machine ask again, or approve by hand", "the request was made at %s, before machine %s was, at %s", clock(asked), m.ID, clock(m.Created))
	case asked.After(m.Created.Add(window)):
		return wait("replace the machine, make a token to join again, or approve by hand",
			"the request was made at %s, and machine %s, which was made at %s, may ask within %s", clock(asked), m.ID, clock(m.Created), window)
	}
	return witness("machine %s was made at %s, and the request within %s of it", m.ID, clock(m.Created), window)
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
