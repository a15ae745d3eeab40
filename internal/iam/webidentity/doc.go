// SPDX-License-Identifier: Apache-2.0

// Package webidentity reads and verifies the tokens of OpenID Connect issuers: JSON Web Tokens (RFC 7519) in compact
// form, those of Kubernetes service accounts among them, and the documents that issuers publish about their keys.
//
//	Read(text)          size, form, header and claims; nothing is proven yet
//	Token.Issuer()      whose keys to ask
//	Token.Verify(keys)  key, signature, times: the claims
//	Claims.For(…)       the audience
//	Claims.Bound()      the service account and the pod that a token of Kubernetes is for
//
// It trusts the keys that it is given, and nothing that a token says of keys: jwk, jku, x5u and x5c are not read, the
// algorithm must be the one of the key that kid names, and none and the HMACs are not known at all. It refuses what has
// two readings: keys of an object that are there twice or in other capitals, base64 with spare bits, line breaks or
// padding, times that are not numbers, key sets with two keys of one id.
//
// What happens if
//
//	a token is refused      the error is a *tokenrefusal.Refusal: the rule, what was seen, and the fix; never the token
//	kid is not in the keys  RuleKey: the caller may ask the issuer again, as often as it thinks right
//	a key cannot be used    it is left out of the keys (encryption keys, curves and algorithms that are not verified here)
package webidentity
