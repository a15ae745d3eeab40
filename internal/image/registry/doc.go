// SPDX-License-Identifier: Apache-2.0

// Package registry is the account's image registry, as ECR's is: the distribution protocol of OCI, with HTTP Basic
// authentication by the user AWS and a password of ecr:GetAuthorizationToken, and each request decided by IAM. It runs
// in a process of its own, so that pushes and pulls outlive the service.
//
//	client ──TLS──> route ──> whose password, which actions (package registrylogin) ──> package registrystore
//
//	GET  /v2/                          a good password
//	GET  NAME/manifests/REF            ecr:BatchGetImage
//	GET  NAME/blobs/DIGEST             ecr:GetDownloadUrlForLayer
//	HEAD NAME/blobs/DIGEST             ecr:BatchCheckLayerAvailability or ecr:GetDownloadUrlForLayer
//	POST NAME/blobs/uploads/           ecr:InitiateLayerUpload; and ecr:CreateRepository, if there is no such repository
//	PATCH, GET, DELETE of an upload    ecr:UploadLayerPart
//	PUT  of an upload                  ecr:CompleteLayerUpload
//	PUT  NAME/manifests/REF            ecr:PutImage
//	GET  NAME/tags/list                ecr:ListImages
//
// Whose VPC a connection of a relay is in is in its requests' context, for what answers machines besides (package
// pullthrough).
//
// It trusts the account's answer about a password, and nothing that a client says: names and digests are checked before
// they become paths, a body is read after its sender may send it, and content must have the digest that it is called
// by. Without a password everything is refused. Images are removed by ECR's API, as there: DELETE is refused. While the
// account is away, requests are answered with 503 after some seconds.
package registry
