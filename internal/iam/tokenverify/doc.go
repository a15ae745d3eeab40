// SPDX-License-Identifier: Apache-2.0

// Package tokenverify verifies tokens and returns their principals. There are two implementations of [Verifier]:
// [Remote] replays the presigned request in the token at the STS it was made for, as aws-iam-authenticator does, and
// [Own] has the account check it whose keys muster's own identity service has.
//
// An error is one of three: *[Refused] is a "no" that may be remembered for a while, [ErrThrottled] means that the
// question was not even asked (or STS did not want to answer), and *[Unavailable] that the token could not be verified.
// Only the first is about the caller.
package tokenverify
