// SPDX-License-Identifier: Apache-2.0

// Package tokenverify finds out who made a token. There are two ways, both a [Verifier]: [Remote] replays the presigned request that the
// token is at the STS it was made for, as aws-iam-authenticator does, and [Own] checks the signature itself, with a derived key
// that muster's identity service tells.
//
// An error is one of three: *[Refused] is a "no" that may be remembered for a while, [ErrThrottled] means that the question was not
// even asked (or STS did not want to answer), and *[Unavailable] that nobody could tell. Only the first is about the caller.
package tokenverify
