// SPDX-License-Identifier: Apache-2.0

// Package token has the commands about bootstrap tokens, the hosts registered with them, and tokens of IAM identities.
// Called as aws-iam-authenticator, the program is a client of that name.
package token
