// SPDX-License-Identifier: Apache-2.0

// Package ekstoken makes the tokens by which an IAM identity comes into a cluster, as `aws eks get-token` and aws-iam-authenticator do: a
// GetCallerIdentity request for STS, signed for one cluster and not sent. Whoever verifies it sends it, or checks the signature.
//
// The credentials are found as AWS's own programs find them (environment, files, containers, instance metadata), so a profile or a role
// that works with the AWS CLI works here. Making a token asks nobody, unless the credentials must be got first.
//
// An [Answer] is what kubectl and kubelets expect of a credential plugin, in the version that they asked for. A [Cache] keeps tokens in
// files that nobody else can read.
package ekstoken
