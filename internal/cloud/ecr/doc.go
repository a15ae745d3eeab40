// SPDX-License-Identifier: Apache-2.0

// Package ecr has the actions of ECR about the repositories and images of the account's registry, whose directory it
// shares with the registry's own process (package registrystore). Repositories and images are as they are there at the
// moment of the request; nothing is kept beside it.
//
// The password of GetAuthorizationToken is sealed by the identity service. Layers and manifests are pushed and pulled
// by the registry's own protocol; the actions by which ECR's clients could do the same, policies of repositories and
// lifecycle rules are refused.
package ecr
