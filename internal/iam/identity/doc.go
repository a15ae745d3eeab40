// SPDX-License-Identifier: Apache-2.0

// Package identity says who somebody becomes in a cluster: a [Principal] that STS vouches for goes in, and a user name with groups
// comes out, or the reason why not.
//
// The mappings come from four sources, which are asked in this order: access entries, IAMIdentityMapping objects, the ConfigMap
// kube-system/aws-auth, and a mounted file. Within a source the order is the one in which it was written. The first entry that
// matches the principal decides, also where it decides to refuse: what comes after it is never a way round it.
//
// A [Table] is an immutable snapshot of all of them. An entry that is wrong is left out and told as a [Problem]; it changes nothing
// for principals that it does not name.
package identity
