// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"muster.dev/muster/internal/certificates/pki"
)

// Config lists the parts of a certificate authority.
type Config struct {
	Certificate string // file in PEM, which may hold a private key as well
	Key         Source
	Logger      *slog.Logger
}

// CA signs with a certificate in a file and the key that belongs to it. It looks at both before each use. While they do
// not fit, as between the two writes of a replacement, the old pair goes on.
type CA struct {
	config      Config
	certificate *watched[*x509.Certificate]

	now atomic.Pointer[fitting]
	mu  sync.Mutex // held while two are compared, never during a signature
}

var _ Signer = (*CA)(nil)

// fitting is a certificate and a key that were compared.
type fitting struct {
	certificate *x509.Certificate
	public      crypto.PublicKey
	pair        *pair // that signs: certificate and its key, or if they do not fit, the pair before them
	err         error // if there is none
}

type pair struct {
	certificate *x509.Certificate
	key         Key
}

// New reads the certificate and asks for the key, and refuses what cannot sign. A key that is unavailable may come
// later: then only the certificate has been read.
func New(ctx context.Context, c Config) (*CA, error) {
	ca, err := newCA(c)
	if err != nil {
		return nil, err
	}
	switch _, err := ca.pair(ctx); {
	case errors.Is(err, ErrUnavailable):
		c.Logger.Warn("nothing can be signed yet", "certificate", c.Certificate, "error", err)
	case err != nil:
		return nil, err
	}
	return ca, nil
}

func newCA(c Config) (*CA, error) {
	switch {
	case c.Certificate == "" || c.Key == nil:
		return nil, errors.New("a signer needs the file of its certificate and a key")
	case c.Logger == nil:
		return nil, errors.New("a signer needs a logger")
	}
	ca := &CA{config: c, certificate: watch(c.Certificate, "signing certificate", parseCertificate, c.Logger)}
	if _, err := ca.certificate.get(); err != nil {
		return nil, err
	}
	return ca, nil
}

// Issuer returns the certificate that signs now.
func (c *CA) Issuer(ctx context.Context) (*x509.Certificate, error) {
	p, err := c.pair(ctx)
	if err != nil {
		return nil, err
	}
	return p.certificate, nil
}

// Sign signs with the key that belongs to Issuer.
func (c *CA) Sign(ctx context.Context, prepared pki.Prepared) ([]byte, error) {
	p, err := c.pair(ctx)
	if err != nil {
		return nil, err
	}
	return prepared.Sign(rand.Reader, p.certificate, during{ctx, p.key})
}

// pair returns the present pair if it fits, the one before otherwise.
func (c *CA) pair(ctx context.Context) (*pair, error) {
	return c.with(c.config.Key(ctx))
}

func (c *CA) with(key Key, err error) (*pair, error) {
	before := c.now.Load()
	if err != nil {
		if before != nil && before.pair != nil {
			return before.pair, nil // its key knows best whether it can sign
		}
		return nil, fmt.Errorf("finding the key of the signing certificate %s: %w", c.config.Certificate, err)
	}
	certificate, err := c.certificate.get()
	if err != nil {
		return nil, err
	}
	if !before.is(certificate, key) {
		before = c.compare(certificate, key)
	}
	return before.pair, before.err
}

func (f *fitting) is(certificate *x509.Certificate, key Key) bool {
	return f != nil && f.certificate == certificate && same(f.public, key.Public())
}

func (c *CA) compare(certificate *x509.Certificate, key Key) *fitting {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.now.Load()
	if before.is(certificate, key) {
		return before // another was faster
	}
	next := &fitting{certificate: certificate, public: key.Public()}
	switch {
	case same(key.Public(), certificate.PublicKey):
		next.pair = &pair{certificate, key}
		if before != nil && (before.pair == nil || !before.pair.certificate.Equal(certificate)) {
			c.config.Logger.Info("signing certificate reloaded", "certificate", c.config.Certificate,
				"subject", certificate.Subject.String(), "expires", certificate.NotAfter)
		}
	case before != nil && before.pair != nil:
		next.pair = before.pair
		c.config.Logger.Warn("the key is not the signing certificate's; the old pair goes on", "certificate", c.config.Certificate)
	default:
		next.err = fmt.Errorf("the private key is not the certificate's (%s)", c.config.Certificate)
	}
	c.now.Store(next)
	return next
}
