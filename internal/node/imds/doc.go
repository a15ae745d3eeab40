// SPDX-License-Identifier: Apache-2.0

// Package imds is the instance metadata service of EC2, version 2 (IMDSv2): a [Server] that gives machines their
// identity, user data and role credentials, and a [Client].
//
//	PUT /latest/api/token                (X-aws-ec2-metadata-token-ttl-seconds: 1..21600)  -> a token
//	GET /latest/user-data                (X-aws-ec2-metadata-token: ...)
//	GET /latest/meta-data/...
//	GET /latest/meta-data/iam/info and iam/security-credentials/ROLE
//	GET /latest/dynamic/instance-identity/document
//
// There is no version 1: a request without a token is refused. A token takes a PUT with a header of its own, neither of
// which a program that is tricked into fetching a URL sends, and one that passed a proxy (X-Forwarded-For) is refused.
//
// The server knows a machine by nothing but the address that it is asked from, so the network must deliver an answer to
// an address to that machine alone (package vpc does). Nothing is kept: a token is a signed statement of its machine
// and its end, so a server that was killed and started again, with the same key, honours those of its former life.
package imds
