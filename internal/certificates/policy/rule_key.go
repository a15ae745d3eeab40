// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/certificates/pki"

// checkKey refuses kinds of keys that the operator did not choose. Keys that are too weak do not get this far.
func checkKey(e evaluation) outcome {
	k := e.request.CSR.Key()
	switch {
	case k.Algorithm == pki.ECDSA, k.Algorithm == pki.RSA, k.Algorithm == pki.Ed25519 && e.policy.AllowEd25519:
		return pass("%s", k)
	default:
		return refuse("use ECDSA or RSA", "the key is %s", k)
	}
}
