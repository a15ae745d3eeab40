// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/plane/podidentity"
)

// identityWays are the ways to an identity of IAM's that evidence is about, as codes have them.
var identityWays = map[string]string{podidentity.ByPodIdentity: "PodIdentity", podidentity.ByWebIdentity: "WebIdentity"}

// OfPodIdentity is the evidence in what is known of a pod's IAM identity: that the way which its environment names leads to
// no credentials, for a reason that has a code. A pod whose environment names no way may not want any.
func OfPodIdentity(e podidentity.Explanation, at Place) (diagnosis.Evidence, bool) {
	i := slices.IndexFunc(e.Ways, func(w podidentity.Way) bool { return w.Way == e.Way })
	if i < 0 || e.Has || e.Ways[i].Has || e.Ways[i].Code == "" || identityWays[e.Way] == "" {
		return diagnosis.Evidence{}, false
	}
	w := e.Ways[i]
	text := "service account " + e.ServiceAccount
	if w.Role != "" {
		text += ", role " + w.Role
	}
	return diagnosis.Evidence{
		Source: cause.FromIdentity, Object: "pod/" + at.String(), Look: "muster auth pod " + at.String(), Code: identityWays[e.Way] + "/" + w.Code,
		Text: bounded(text + ": " + w.Why), Trouble: true,
	}, true
}
