// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
)

var (
	// ErrUsed means that the Prepared was signed before: prepare another.
	ErrUsed = errors.New("this prepared certificate was signed already")
	// ErrIssuerChanged means that the signer's certificate is not the one that was prepared for: prepare another.
	ErrIssuerChanged = errors.New("the signing certificate changed since the certificate was prepared")
)

// Sign makes the certificate, in PEM. A Prepared signs once, whether that works or not.
func (p Prepared) Sign(random io.Reader, issuer *x509.Certificate, key crypto.Signer) ([]byte, error) {
	switch {
	case p.prepared == nil:
		return nil, errors.New("nothing was prepared")
	case !p.IssuedBy(issuer):
		return nil, ErrIssuerChanged
	case !p.used.CompareAndSwap(false, true):
		return nil, ErrUsed
	}
	der, err := x509.CreateCertificate(random, p.template, issuer, p.publicKey, key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	if err := p.lint(der); err != nil {
		return nil, fmt.Errorf("linting the signed certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
