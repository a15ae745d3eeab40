// SPDX-License-Identifier: Apache-2.0

// Package accesspolicy keeps RBAC in step with the access policies of access entries: who is mapped by an entry is in a group of
// its own (identity.PolicyGroup), and bindings of that group to cluster roles say what its policies say. They are objects like any
// other, so kubectl auth can-i and everybody's audits see them.
//
// For this the part itself needs no right to do what policies allow. It needs bind on the cluster roles that they are, by name,
// see [Rules].
package accesspolicy
