// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"

	"github.com/miekg/pkcs11"
)

// algorithm is what the wire calls a hash and PKCS #11 needs to know of it.
type algorithm struct {
	hash      crypto.Hash
	mechanism uint
	mgf       uint
	prefix    []byte // of DigestInfo, RFC 8017, 9.2, note 1
}

func algorithmOf(name string) (algorithm, error) {
	// SEQUENCE { SEQUENCE { OID 2.16.840.1.101.3.4.2.x, NULL }, OCTET STRING }
	info := func(x, size byte) []byte {
		return []byte{0x30, 0x11 + size, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, x, 0x05, 0x00, 0x04, size}
	}
	switch name {
	case crypto.SHA256.String():
		return algorithm{crypto.SHA256, pkcs11.CKM_SHA256, pkcs11.CKG_MGF1_SHA256, info(1, 32)}, nil
	case crypto.SHA384.String():
		return algorithm{crypto.SHA384, pkcs11.CKM_SHA384, pkcs11.CKG_MGF1_SHA384, info(2, 48)}, nil
	case crypto.SHA512.String():
		return algorithm{crypto.SHA512, pkcs11.CKM_SHA512, pkcs11.CKG_MGF1_SHA512, info(3, 64)}, nil
	}
	return algorithm{}, fmt.Errorf("the hash %q is not known here", name)
}

// order is what the token is asked for.
type order struct {
	mechanism *pkcs11.Mechanism
	data      []byte
}

func newOrder(public crypto.PublicKey, r request) (order, error) {
	a, err := algorithmOf(r.Hash)
	switch {
	case err != nil:
		return order{}, err
	case len(r.Digest) != a.hash.Size():
		return order{}, fmt.Errorf("the digest has %d bytes, and those of %s have %d", len(r.Digest), a.hash, a.hash.Size())
	}
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		if r.Padding != "" || r.Salt != 0 {
			return order{}, errors.New("a padding is for RSA keys")
		}
		// A digest that is longer than the key is cut (FIPS 186-5, 6.4.1); not all tokens do it themselves.
		return order{pkcs11.NewMechanism(pkcs11.CKM_ECDSA, nil), r.Digest[:min(len(r.Digest), size(key.Curve))]}, nil
	case *rsa.PublicKey:
		switch {
		case r.Padding == "pkcs1v15" && r.Salt == 0:
			return order{pkcs11.NewMechanism(pkcs11.CKM_RSA_PKCS, nil), append(a.prefix, r.Digest...)}, nil
		case r.Padding == "pss" && r.Salt >= 0 && r.Salt <= key.Size():
			params := pkcs11.NewPSSParams(a.mechanism, a.mgf, uint(r.Salt))
			return order{pkcs11.NewMechanism(pkcs11.CKM_RSA_PKCS_PSS, params), r.Digest}, nil
		}
		return order{}, fmt.Errorf("the padding %q with a salt of %d bytes is not known here", r.Padding, r.Salt)
	}
	return order{}, fmt.Errorf("a %T cannot sign here", public)
}

// sign signs, in another session if need be.
func (t *token) sign(r request) ([]byte, error) {
	o, err := newOrder(t.public, r)
	if err != nil {
		return nil, err
	}
	s, err := t.pool.take()
	if err != nil {
		return nil, lost{err}
	}
	signature, err := t.signIn(s, o)
	if sessionLost(err) {
		_ = t.lib.CloseSession(s.handle) // it may be there still
		if s, err = t.pool.renew(); err != nil {
			return nil, lost{err}
		}
		signature, err = t.signIn(s, o)
	}
	t.pool.put(s)
	if tokenLost(err) || sessionLost(err) {
		return nil, lost{err}
	}
	return signature, err
}

func (t *token) signIn(s *session, o order) ([]byte, error) {
	if err := t.lib.SignInit(s.handle, []*pkcs11.Mechanism{o.mechanism}, s.key); err != nil {
		return nil, fmt.Errorf("preparing a signature: %w", err)
	}
	signature, err := t.lib.Sign(s.handle, o.data)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	if _, ok := t.public.(*ecdsa.PublicKey); ok {
		return toASN1(signature)
	}
	return signature, nil
}

// toASN1 turns r and s side by side, as tokens give them, into what X.509 has.
func toASN1(raw []byte) ([]byte, error) {
	half := len(raw) / 2
	if half == 0 || len(raw)%2 != 0 {
		return nil, fmt.Errorf("the token made a signature of %d bytes", len(raw))
	}
	return asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(raw[:half]), new(big.Int).SetBytes(raw[half:])})
}

// try signs something and verifies it: the public key that was found must be the private key's, which must be allowed
// to sign.
func (t *token) try(s *session) error {
	digest := sha256.Sum256([]byte("muster-pkcs11"))
	r := request{Hash: crypto.SHA256.String(), Digest: digest[:]}
	if _, ok := t.public.(*rsa.PublicKey); ok {
		r.Padding = "pkcs1v15"
	}
	o, err := newOrder(t.public, r)
	if err != nil {
		return err
	}
	signature, err := t.signIn(s, o)
	if err != nil {
		return fmt.Errorf("trying the key: %w", err)
	}
	good := false
	switch key := t.public.(type) {
	case *ecdsa.PublicKey:
		good = ecdsa.VerifyASN1(key, digest[:], signature)
	case *rsa.PublicKey:
		good = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	}
	if !good {
		return fmt.Errorf("the public key beside the private key with %s is not its own", t.config.key())
	}
	return nil
}
