// SPDX-License-Identifier: Apache-2.0

// Package podpatch decides what the pod identity webhook changes in a new pod, so that AWS's SDKs in it find the
// credentials of a role: the environment, a projected token, its mounts. It gives what amazon-eks-pod-identity-webhook
// v0.6.17 gives, byte for byte (test/awssdk/podwebhook compares the two), and by choice what a pod needs to reach an
// account of Muster's instead of AWS: the account's authority in AWS_CA_BUNDLE, and AWS_ENDPOINT_URL.
//
//	service account's annotations, ConfigMap, defaults → Entry     Accounts.Find
//	Entry, or container credentials                    → Identity  IdentityOf
//	pod, Identity                                      → patch     Patch
//
// It trusts annotations of service accounts no more than their writer may be trusted: a role is only named here, and
// STS decides. For an annotation that it cannot read it takes the default, as the original does, and warns.
//
// What happens if
//
//	a container has a variable of a group  the group is left as it is there
//	a container is on the skip list        it gets neither variables nor the mount
//	a token would be too short             it lasts ten minutes, which is the least that the API server gives
package podpatch
