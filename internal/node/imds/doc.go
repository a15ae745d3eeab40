// SPDX-License-Identifier: Apache-2.0

// Package imds is the instance metadata service of EC2, version 2, from both ends: a [Server] that tells machines who they are and
// what they were launched with, and a [Client] that asks.
//
//	PUT /latest/api/token                (X-aws-ec2-metadata-token-ttl-seconds: 1..21600)  -> a token
//	GET /latest/user-data                (X-aws-ec2-metadata-token: ...)
//	GET /latest/meta-data/...
//	GET /latest/meta-data/iam/info and iam/security-credentials/ROLE
//	GET /latest/dynamic/instance-identity/document
//
// There is no version 1: whoever has no token learns nothing. A token takes a PUT with a header of its own, neither of which a
// program that is tricked into fetching a URL sends, and one that passed a proxy (X-Forwarded-For) is refused.
//
// The server knows a machine by nothing but the address that it is asked from, so whoever runs it must see to it that an answer to
// an address reaches that machine alone (package vpc does). Nothing is kept: a token is a signed statement of whose it is and when
// it ends, so a server that was killed and started again, with the same key, honours those of its former life.
package imds
