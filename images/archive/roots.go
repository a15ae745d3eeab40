// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// roots are the certificate authorities that Mozilla trusts, in PEM, as the version of the module has them: those of
// whatever machine packs an image would make a different one everywhere. Authorities that are trusted for some
// certificates only are left out, because PEM cannot say so.
func roots() ([]byte, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
