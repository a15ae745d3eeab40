// SPDX-License-Identifier: Apache-2.0

// Package eksauth is the EKS Auth API: AssumeRoleForPodIdentity, by which the agent of a machine exchanges the service
// account token of a pod for credentials of the role that a pod identity association gives it.
//
// It trusts the front, which has proven the sender and asked IAM, and it believes the machine nothing: whose pod it is,
// the token's signature and the cluster's API server say; which machine asks, the session of its role says, which
// instance metadata gives to that machine alone.
//
// It refuses
//
//	callers that are not machines              AccessDeniedException: a person with the role's rights does not act for pods
//	machines of other clusters                 AccessDeniedException
//	tokens of another issuer or audience, damaged, of no pod, of a pod that is gone   InvalidTokenException
//	tokens that have ended                     ExpiredTokenException
//	tokens of pods on other machines           AccessDeniedException: a copied token is worth nothing elsewhere
//	service accounts without an association    ResourceNotFoundException
//	roles that do not trust EKS                AccessDeniedException
//
// What happens if the watch of pods or of associations has not listed yet: ServiceUnavailableException, which the agent
// tries again.
package eksauth
