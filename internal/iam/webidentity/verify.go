// SPDX-License-Identifier: Apache-2.0

package webidentity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"math/big"
	"strconv"
	"time"

	"muster.dev/muster/internal/iam/tokenrefusal"
)

// MaxAhead is how far an issuer's clock may be ahead.
const MaxAhead = time.Minute

// Verify returns the claims if one of the keys signed the token and it is good now. Errors are *tokenrefusal.Refusal.
func (t Token) Verify(keys Keys, now time.Time) (Claims, error) {
	k, ok := keys.byID[t.keyID]
	switch {
	case !ok:
		return Claims{}, tokenrefusal.New(RuleKey, tokenrefusal.Quote(t.keyID), "the issuer publishes no such key: ask for a new token")
	case k.algorithm != t.algorithm:
		return Claims{}, tokenrefusal.New(RuleAlgorithm, t.algorithm, "the key of the token is for "+k.algorithm)
	case !k.signed(t.signed, t.signature):
		return Claims{}, tokenrefusal.New(RuleSignature, "", "the issuer's key did not sign this: send the token unchanged")
	}
	c := t.claims
	clock := func(name string, at time.Time) string {
		return name + " " + strconv.FormatInt(at.Unix(), 10) + ", and it is " + strconv.FormatInt(now.Unix(), 10)
	}
	switch {
	case !now.Before(c.Expires):
		return Claims{}, tokenrefusal.New(RuleExpired, clock("exp", c.Expires), "read the token's file again: it is replaced before it ends")
	case c.NotBefore.Sub(now) > MaxAhead:
		return Claims{}, tokenrefusal.New(RuleEarly, clock("nbf", c.NotBefore), "set the issuer's clock: it may be a minute ahead")
	case c.IssuedAt.Sub(now) > MaxAhead:
		return Claims{}, tokenrefusal.New(RuleEarly, clock("iat", c.IssuedAt), "set the issuer's clock: it may be a minute ahead")
	}
	return c, nil
}

// signed reports whether the key signed it.
func (k key) signed(content, signature []byte) bool {
	sum := sha256.Sum256(content)
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	case *ecdsa.PublicKey:
		const size = 32 // of r, and of s (RFC 7518, section 3.4)
		if len(signature) != 2*size {
			return false
		}
		return ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:]))
	}
	return false
}
