// SPDX-License-Identifier: Apache-2.0

// Package token makes and reads bootstrap tokens, and binds them: an extra group in the token's Secret names the
// machine, node or group that it is valid for, the API server writes that group into every certificate signing request
// made with the token, and the certificate controller compares. Tokens of kubeadm are compatible in both directions.
// The package is pure: randomness is an argument.
package token
