// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"slices"
	"time"

	"muster.dev/muster/internal/plane/tokenkeys"
)

// TokenKey describes a key of a cluster's service account tokens.
type TokenKey struct {
	ID        string              `json:"id"`
	Algorithm tokenkeys.Algorithm `json:"algorithm"`
	// Signs says that it signs now.
	Signs bool `json:"signs"`
	// Created is since when it is published; SignsFrom is when it began, or begins, to sign.
	Created   time.Time `json:"created"`
	SignsFrom time.Time `json:"signsFrom"`
	// Published says that it is in the issuer's documents. Tokens for the API server are good by it in any case.
	Published bool `json:"published"`
}

// TokenKeys describes the keys of service account tokens, in the order in which they began to sign.
func TokenKeys(ring tokenkeys.Ring, now time.Time) []TokenKey {
	published, signer := ring.Published(now), ring.Signer(now)
	var status []TokenKey
	for _, k := range ring.Trusted(now) {
		status = append(status, TokenKey{
			ID: k.ID, Algorithm: k.Algorithm, Signs: k.ID == signer.ID, Created: k.Created, SignsFrom: k.Signs,
			Published: slices.ContainsFunc(published, func(p tokenkeys.Key) bool { return p.ID == k.ID }),
		})
	}
	return status
}
