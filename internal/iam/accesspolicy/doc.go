// SPDX-License-Identifier: Apache-2.0

// Package accesspolicy turns the access policies of access entries into RBAC: each entry has a group of its own
// (identity.PolicyGroup), and bindings of that group to cluster roles grant the rights of its policies. The bindings
// are objects like any other, so kubectl auth can-i and audits see them.
//
// The controller itself does not need the rights that policies grant. It needs bind on their cluster roles, by name,
// see [Rules].
package accesspolicy
