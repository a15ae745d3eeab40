// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"context"
	"crypto/x509"

	"muster.dev/muster/internal/certificates/pki"
)

// Signer signs prepared certificates.
type Signer interface {
	// Issuer returns the certificate to prepare for.
	Issuer(ctx context.Context) (*x509.Certificate, error)
	// Sign returns the certificate in PEM, the leaf only. pki.ErrIssuerChanged means that Issuer would return another
	// certificate by now: prepare again.
	Sign(ctx context.Context, p pki.Prepared) ([]byte, error)
}
