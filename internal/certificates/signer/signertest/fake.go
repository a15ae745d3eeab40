// SPDX-License-Identifier: Apache-2.0

// Package signertest has a signer in memory, which fails on demand.
package signertest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"sync"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/signer"
)

// Fake signs with a key in memory, and fails when told to.
type Fake struct {
	mu          sync.Mutex
	certificate *x509.Certificate
	key         crypto.Signer
	failures    []error
	signed      int
}

var _ signer.Signer = (*Fake)(nil)

// New makes one.
func New(certificate *x509.Certificate, key crypto.Signer) *Fake {
	return &Fake{certificate: certificate, key: key}
}

// Fail makes the next calls of Sign fail, one with each error.
func (f *Fake) Fail(errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, errs...)
}

// Replace changes the authority, as a rotation does.
func (f *Fake) Replace(certificate *x509.Certificate, key crypto.Signer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.certificate, f.key = certificate, key
}

// Signed counts the certificates it signed.
func (f *Fake) Signed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.signed
}

// Issuer returns the authority.
func (f *Fake) Issuer(context.Context) (*x509.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.certificate, nil
}

// Sign signs or fails.
func (f *Fake) Sign(_ context.Context, p pki.Prepared) ([]byte, error) {
	certificate, key, err := f.next()
	if err != nil {
		return nil, err
	}
	out, err := p.Sign(rand.Reader, certificate, key)
	if err == nil {
		f.mu.Lock()
		f.signed++
		f.mu.Unlock()
	}
	return out, err
}

// next returns the authority or the next failure, so that no lock is held during a signature.
func (f *Fake) next() (*x509.Certificate, crypto.Signer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.failures) > 0 {
		err := f.failures[0]
		f.failures = f.failures[1:]
		return nil, nil, err
	}
	return f.certificate, f.key, nil
}
