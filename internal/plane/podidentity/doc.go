// SPDX-License-Identifier: Apache-2.0

// Package podidentity says which pod a service account token is of, and which role a pod identity association gives it
// (EKS Pod Identity).
//
//	token ──► Cluster.Verify ──► Pod: namespace, name, UID, service account, node
//	                               │
//	associations, by a watch ──► Associations.Of ──► Association: role, target role, session policy
//
// It trusts the keys of the cluster's own issuer, and what the API server of the cluster and the management plane say
// by a watch. It believes a token nothing that the API server does not say, too: the pod must be there now, and its
// node is the one that the API server assigned it to. Of an association it believes no more than the cluster in whose
// namespace it is: one that names another cluster is not seen.
//
// What happens if
//
//	the audience is not pods.eks.amazonaws.com   the token is refused: it is for somebody else
//	the token is bound to no pod                 it is refused
//	the pod or its service account is gone       podwatch.ErrNoPod
//	a watch has not listed yet                   ErrNotReady: neither yes nor no
//	there are two associations of one account    the first by creation and name counts
package podidentity
