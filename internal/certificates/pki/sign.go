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

// Sign makes the certificate, in PEM, by signing the bytes that were linted. A Prepared signs once, whether that works
// or not. The signature is verified before it is used, so a key that does not fit, or a broken device, is found out.
func (p Prepared) Sign(random io.Reader, issuer *x509.Certificate, key crypto.Signer) ([]byte, error) {
	switch {
	case p.prepared == nil:
		return nil, errors.New("nothing was prepared")
	case !p.IssuedBy(issuer):
		return nil, ErrIssuerChanged
	case !p.used.CompareAndSwap(false, true):
		return nil, ErrUsed
	}
	signature, err := crypto.SignMessage(key, random, p.signed.tbs, p.signed.opts)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	if err := p.issuer.CheckSignature(p.algorithm, p.signed.tbs, signature); err != nil {
		return nil, fmt.Errorf("verifying the signature just made: %w", err)
	}
	der, err := assemble(p.signed.tbs, signature)
	if err != nil {
		return nil, fmt.Errorf("putting the signature to the certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
