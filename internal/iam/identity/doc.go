// SPDX-License-Identifier: Apache-2.0

// Package identity maps IAM principals to Kubernetes users: a [Principal] that STS has confirmed goes in, and a user
// name with groups comes out, or the reason for the refusal.
//
// The mappings come from four sources, which are asked in this order: access entries, IAMIdentityMapping objects, the
// ConfigMap kube-system/aws-auth, and a mounted file. Within a source the order is the one in which it was written. The
// first entry that matches the principal decides, also where it decides to refuse: later entries never override it.
//
// A [Table] is an immutable snapshot of all of them. An invalid entry is left out and reported as a [Problem]; it
// changes nothing for principals that it does not name.
package identity
