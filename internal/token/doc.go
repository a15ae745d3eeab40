// SPDX-License-Identifier: Apache-2.0

// Package token makes and reads bootstrap tokens, each good for one machine: an extra group in the token's Secret names the
// machine, the API server writes it into every certificate signing request made with the token, and the certificate
// controller compares. It is pure: randomness comes in, values go out.
package token
