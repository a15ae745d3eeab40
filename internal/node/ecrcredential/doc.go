// SPDX-License-Identifier: Apache-2.0

// Package ecrcredential is the kubelet's credential provider for images of ECR, which kubelets of EKS have as the
// program ecr-credential-provider: it reads a CredentialProviderRequest, and answers with a password for the image's
// registry that ecr:GetAuthorizationToken gives the machine's role.
//
// The registry's name says the region, and is the only thing of the request that is used; a name that is not one of
// ECR's is refused, and so is one of another account than ECR's answer is for, so that no password goes to another
// registry. The credentials are those of AWS's SDK: on a machine the role's, by instance metadata. Nothing is kept: the
// kubelet keeps the answer for half of the password's life.
package ecrcredential
