// SPDX-License-Identifier: Apache-2.0

// Package token makes and reads bootstrap tokens, and binds them: an extra group in the token's Secret names the machine, or what
// else it is good for, the API server writes it into every certificate signing request made with the token, and the certificate
// controller compares. Tokens of kubeadm are read, too, and kubeadm reads these. It is pure: randomness comes in, values go out.
package token
