// SPDX-License-Identifier: Apache-2.0

// Package clusteraccess decides which IAM users and roles a new cluster admits, and keeps the roles of node groups
// ready: the entries of the cluster's creator and of node roles, the instance profiles of those roles, and the question
// whether the cluster admits a machine.
//
//	First ──► the creator and the cluster's own node role, which it makes: an entry each, once, recorded in ConfigMap muster-first-access
//	NodeRoles.Prepare ──► a group's role: found, its instance profile found or made, its entry made
//	NodeRoles.PrepareFargate ──► a pod execution role: the same, with an entry of type FARGATE_LINUX
//	NodeRoles.Leave ──► the account's node role, in a cluster of an earlier version: its entry removed, once, when nothing in the cluster has the role
//	NodeRoles.Check ──► the machine's own credentials ──► a token ──► TokenReview by the authenticator ──► a node, or which rule refused
//	Admitted ──► entries, mappings, aws-auth, the identity service: something changed, so machines are checked again
//
// Entries are access entries, or IAMIdentityMapping objects where the authentication mode is CONFIG_MAP. When the mode
// moves on, the first entries follow. An entry that exists is never changed, and one that was deleted is not made again
// by First.
//
// What happens if
//
//	the identity service has not made its first role    nothing is refused for it: ErrNotYet, and the look is repeated
//	a role or its instance profile is not there         a RoleProblem with the fix, which becomes the group's status
//	the cluster's own role is somebody else's           a RoleProblem: it is neither let in nor given to machines
//	muster-node is the role of running machines         they keep it, and its entry stays until the last of them is gone
//	the authenticator or identity service is away       Check reports an error, which is not a refusal
//	two parts of the service make one entry at a time   the slower one finds it and is content
package clusteraccess
