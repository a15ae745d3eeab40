// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/pki"

// checkUsages refuses any usage too many: a serving certificate that is a client's as well would be a second identity.
func checkUsages(e evaluation) outcome {
	p, _ := pki.ProfileFor(e.request.SignerName)
	if !p.AllowsUsages(e.request.Usages) {
		return refuse("they must be exactly digital signature and "+p.Usages[1]+", and key encipherment if the key is RSA",
			"the usages are %q", e.request.Usages)
	}
	return pass("%q", e.request.Usages)
}
