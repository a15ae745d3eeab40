// SPDX-License-Identifier: Apache-2.0

// Package authenticator answers an API server's TokenReviews about tokens of AWS IAM: muster authenticator.
//
//	token ──► seen before? ──► form (ststoken) ──► principal (tokenverify.Verifier) ──► user (identity.Table) ──► answer
//
// The cache keeps the principal of a token, never the user: each request is mapped by the mappings as they are at that
// moment. Sources of mappings are watched, and a change counts as soon as it is heard. The identity service reports
// changes of keys; then the principals concerned are forgotten, and answers that are on their way at that moment are
// not remembered.
//
// Answers are those of aws-iam-authenticator: 200 with a user, 403 for a "no", 429 when there are more questions than
// can be asked, 400 and 405 for a request that is not a TokenReview. If the token could not be verified, the status is
// 503, so that an API server does not take it for a "no" and keep it.
package authenticator
