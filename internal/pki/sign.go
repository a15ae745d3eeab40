// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
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

// Sign makes the certificate, in PEM. A Prepared signs once, whether that works or not. crypto/x509 verifies the signature
// before it returns it, so a key that does not fit, or a broken device, is found out.
func (p Prepared) Sign(random io.Reader, issuer *x509.Certificate, key crypto.Signer) ([]byte, error) {
	switch {
	case p.prepared == nil:
		return nil, errors.New("nothing was prepared")
	case !p.IssuedBy(issuer):
		return nil, ErrIssuerChanged
	case !p.used.CompareAndSwap(false, true):
		return nil, ErrUsed
	}
	der, err := x509.CreateCertificate(random, p.template, issuer, p.publicKey, guard{key, p.tbs})
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	c, err := x509.ParseCertificate(der)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the signed certificate back: %w", err)
	case !bytes.Equal(c.RawTBSCertificate, p.tbs):
		return nil, errors.New("the signed certificate is not the one that was checked")
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
