// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"time"
)

const (
	// Backdate is how much earlier than its making a certificate is valid: it covers clocks that are behind.
	Backdate = 5 * time.Minute
	// short certificates are not shortened further by the backdating.
	short = 8 * time.Hour
	// minDuration is the least that expirationSeconds gets.
	minDuration = 10 * time.Minute
)

// Validity computes the validity of a certificate as upstream does (pkg/controller/certificates/signer/signer.go,
// duration, and authority/policies.go, PermissiveSigningPolicy): ttl is the signer's own duration and an upper bound on
// what is asked for.
func Validity(now time.Time, ttl time.Duration, expirationSeconds *int32, caNotAfter time.Time) (notBefore, notAfter time.Time, err error) {
	if ttl < minDuration {
		return notBefore, notAfter, fmt.Errorf("the signer's duration is %s; it must be %s or more", ttl, minDuration)
	}
	if expirationSeconds != nil {
		ttl = min(ttl, max(minDuration, time.Duration(*expirationSeconds)*time.Second))
	}
	now = now.UTC().Truncate(time.Second)
	if !now.Before(caNotAfter) {
		return notBefore, notAfter, fmt.Errorf("the signing certificate expired on %s; renew it", caNotAfter.UTC().Format(time.RFC3339))
	}
	notBefore, notAfter = now.Add(-Backdate), now.Add(ttl)
	if ttl >= short {
		notAfter = notAfter.Add(-Backdate)
	}
	if notAfter.After(caNotAfter) {
		notAfter = caNotAfter.UTC()
	}
	return notBefore, notAfter, nil
}
