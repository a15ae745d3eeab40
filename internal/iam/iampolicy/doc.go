// SPDX-License-Identifier: Apache-2.0

// Package iampolicy parses and evaluates IAM policy documents. It is pure.
//
// An unknown element or operator is refused when the document is saved, with its place: one that was ignored later
// would be a permission that nobody meant. A condition key is kept whatever it is, and evaluated: one that a request
// does not carry is absent, as on AWS, and Document.Warnings names those that none carries. Where a request cannot be
// judged (a value that is not a date where a date is compared), an Allow does not apply and a Deny does.
//
// An explicit Deny wins over every Allow. Else the identity policies, the permissions boundary and the session policies
// must all allow, those of them that there are. Without an Allow the answer is Neutral, which the caller must treat as
// no.
package iampolicy
