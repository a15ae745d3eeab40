// SPDX-License-Identifier: Apache-2.0

// Package iam has the nouns of AWS Identity and Access Management that muster keeps: accounts, users, access keys,
// roles, instance profiles and policies, with the names, paths, tags, unique IDs and limits that IAM's API reference
// gives them.
//
// It is pure: values in, values out. Chance is an io.Reader and time an argument. The content of policy documents
// belongs to package iampolicy.
//
// An ARN names a thing, and a name can be given again after its owner is gone. The unique id (AIDA…, AROA…) is never
// given again. Properties that must not pass from a deleted user to the next user of that name are therefore kept by
// ID: the owner of a key, the principals of a trust policy (see iampolicy.Document.Bind), the role of an instance
// profile.
package iam
