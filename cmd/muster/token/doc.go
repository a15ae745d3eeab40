// SPDX-License-Identifier: Apache-2.0

// Package token has the commands about bootstrap tokens and about tokens of IAM identities.
package token
