// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/certificates/pki"

// checkNameCount refuses names on client certificates, which would make them serving certificates of sorts, and serving
// certificates of nodes for nothing.
func checkNameCount(e evaluation) outcome {
	n := len(e.request.CSR.DNSNames()) + len(e.request.CSR.Addresses())
	switch {
	case e.profile.AllowsNames(n):
		return pass("%d names and addresses", n)
	case e.profile.Names == pki.NamesNone:
		return refuse("a client certificate must have none", "%d names and addresses are asked for", n)
	default:
		return refuse("a serving certificate must have one or more", "no name or address is asked for")
	}
}
