// SPDX-License-Identifier: Apache-2.0

package policy

// checkSigner leaves requests for other signers alone.
func checkSigner(e evaluation) outcome {
	if _, ok := e.policy.Profile(e.request.SignerName); !ok {
		return refuse("", "the signer %q is not served here", e.request.SignerName)
	}
	return pass("%s", e.request.SignerName)
}
