// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// checkMachineCluster refuses a machine that was launched for another cluster of the account. Its role, or a bootstrap
// token that it got hold of, may be good here; the machine is a node there, and what it was certified for here would
// outlive it.
func checkMachineCluster(e evaluation) outcome {
	if !e.profile.Node {
		return notApplicable(notANode)
	}
	id := asker(e.request, e.who)
	if id == "" {
		return notApplicable("neither a bootstrap token nor the session of an instance says which machine asks")
	}
	switch other := e.facts.Elsewhere; other.State {
	case Unknown:
		return waitFor(other, "it is not known for which cluster machine %s was launched", id)
	case Known:
		return refuse("launch a machine for this cluster", "machine %s, which asks, was launched for cluster %q", id, other.Value)
	default:
		return pass("machine %s, which asks, is of no other cluster that is known", id)
	}
}

// sessionName is what authenticators of IAM tokens write about a session (aws-iam-authenticator, pkg/server/server.go).
const sessionName = "sessionName"

// asker is the ID of the machine that asks, "" if nothing tells it. A session of an instance's own profile is named
// after the instance; another session that is named so shuts itself out, and nobody else.
func asker(r Request, who requester) string {
	if id := who.machine(); id != "" {
		return id
	}
	if names := r.Extra[sessionName]; len(names) == 1 && strings.HasPrefix(names[0], "i-") {
		return names[0]
	}
	return ""
}
