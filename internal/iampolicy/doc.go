// SPDX-License-Identifier: Apache-2.0

// Package iampolicy reads IAM policy documents strictly and decides by them. It is pure.
//
// What it does not know it refuses when the document is saved, with the place named: an element, operator or condition key that was
// ignored later would be a permission that nobody meant. Where a request cannot be judged (a value that is no date where a date is
// compared), an Allow does not apply and a Deny does.
//
// An explicit Deny wins over every Allow, and without an Allow the answer is Neutral, which the caller must treat as no.
package iampolicy
