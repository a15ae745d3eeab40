// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

const (
	minExpiration = 10 * time.Minute // the API server's own limit
	maxExpiration = 365 * 24 * time.Hour
)

// checkExpiration refuses lives that are out of bounds. Kubelets do not ask for one.
func checkExpiration(e evaluation) outcome {
	if e.request.ExpirationSeconds == nil {
		return notApplicable("no duration is asked for")
	}
	least, most := max(e.policy.MinExpiration, minExpiration), e.policy.MaxExpiration
	if most <= 0 {
		most = maxExpiration
	}
	asked := time.Duration(*e.request.ExpirationSeconds) * time.Second
	if asked < least || asked > most {
		return refuse("ask for "+least.String()+" to "+most.String(), "the duration asked for is %s", asked)
	}
	return pass("%s", asked)
}
