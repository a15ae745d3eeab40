// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"context"
	"crypto"
	"crypto/rand"
	"errors"
	"io"
)

// Key is one private key, for as long as the value lives: another key is another value. It is used by many at once.
type Key interface {
	// Public returns the public key. Its type must have the method Equal.
	Public() crypto.PublicKey
	// Sign signs a digest as a crypto.Signer does: ECDSA in ASN.1, RSA as opts ask, and Ed25519, whose opts.HashFunc()
	// is 0, the message itself. It returns soon after ctx is done. A failure that may pass by itself wraps
	// ErrUnavailable.
	Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error)
}

// Source returns the key that there is now. It is asked before every signature, so it answers from memory when it can;
// it may take longer when it is asked first.
type Source func(ctx context.Context) (Key, error)

// ErrUnavailable means that a key cannot be used now but may be later, with nothing changed here: a token that was
// pulled out, a service that is busy or away, a process that is being started again.
var ErrUnavailable = errors.New("the key is not available")

// inMemory is a key that crypto/... can use.
type inMemory struct{ crypto.Signer }

func (k inMemory) Sign(_ context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return k.Signer.Sign(rand.Reader, digest, opts)
}

// during is a key for crypto/x509, which knows no context: it lives for one signature. Its signatures are verified
// there.
type during struct {
	ctx context.Context
	Key
}

func (d during) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return d.Key.Sign(d.ctx, digest, opts)
}

// same reports whether two public keys are.
func same(a, b crypto.PublicKey) bool {
	public, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(b)
}
