// SPDX-License-Identifier: Apache-2.0

// Package tokenkeys keeps the keys that sign a cluster's service account tokens, and says which of them does what at a
// moment:
//
//	        Created         Signs           another signs        + 24 h               + 90 days
//	           │  published   │   signs         │  published         │  trusted           │  gone
//	key     ───┴──────────────┴─────────────────┴────────────────────┴────────────────────┴──────
//
// A published key is in the issuer's documents (package issuer), and STS takes tokens that it signed. A trusted key is
// one by which the API server takes tokens, too: it makes tokens that pods use at the API server good for 90 days, as
// on EKS, and all others for 24 hours at most.
//
// Everything follows from the moments in one file and from the clock, so a rotation is one write. A key is published
// longer than verifiers keep the issuer's documents before it signs. Its private part leaves the file once another key
// signs.
//
// The file is the signer's ([Keeper]). The service makes its directory, once ([Begin]; [Convert] in a cluster of an earlier
// Muster), and has lists of the public keys ([ParsePublic]), which say all but the private parts.
//
// What happens if
//
//	the process dies before or in the write      the file is as it was: nothing was begun; Prune removes what is left of the write after an hour
//	the process dies after it                    every reader does what the file says; Prune is done later
//	the file is damaged or lost                  an error: nothing is signed, and no key is made anew
//	the keys of before are being moved           the file of before stays until the signer has told of each key in it ([Forget])
//	the clock is put back after a rotation       a key without a private part never signs; another one with one does
//
// It trusts the file, which only its owner can read, and the clock of the host.
package tokenkeys
