// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"muster.dev/muster/internal/pki"
)

// checkSigner leaves requests for other signers alone.
func checkSigner(e evaluation) outcome {
	if _, ok := pki.ProfileFor(e.request.SignerName); !ok {
		return refuse("", "the signer %q is not served here", e.request.SignerName)
	}
	return pass("%s", e.request.SignerName)
}
