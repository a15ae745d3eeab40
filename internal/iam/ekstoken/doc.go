// SPDX-License-Identifier: Apache-2.0

// Package ekstoken makes the tokens by which an IAM identity logs in to a cluster, as `aws eks get-token` and
// aws-iam-authenticator do: a GetCallerIdentity request for STS, signed for one cluster and not sent. The verifier
// sends it, or checks the signature.
//
// The credentials are found as AWS's own programs find them (environment, files, containers, instance metadata), so a
// profile or a role that works with the AWS CLI works here. Making a token sends no request, unless the credentials
// must be fetched first.
//
// An [Answer] is an ExecCredential for kubectl and kubelets, in the version that they asked for. A [Cache] keeps tokens
// in files of mode 0600.
package ekstoken
