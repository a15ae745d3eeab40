// SPDX-License-Identifier: Apache-2.0

// Package authenticator answers an API server's TokenReviews about tokens of AWS IAM: muster authenticator.
//
//	token ──► seen before? ──► form (ststoken) ──► who made it (tokenverify.Verifier) ──► who that is here (identity.Table) ──► answer
//
// What is remembered is who made a token, never who that becomes: each request is mapped by the mappings as they are at that moment.
// Sources of mappings are watched, and a change counts as soon as it is told. A change of keys is told by the identity service; then
// what it is about is forgotten, and what is on its way at that moment is not remembered.
//
// Answers are those of aws-iam-authenticator: 200 with a user, 403 for a "no", 429 when there are more questions than can be asked,
// 400 and 405 for what is no TokenReview. Where nobody could tell the status is 503, so that an API server does not take it for a
// "no" and keep it.
package authenticator
