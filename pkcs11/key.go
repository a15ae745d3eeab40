// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/miekg/pkcs11"
)

// findKey finds the one private key.
func (t *token) findKey(handle pkcs11.SessionHandle) (pkcs11.ObjectHandle, error) {
	id, _ := hex.DecodeString(t.config.keyID) // config.check did
	found, err := t.search(handle, pkcs11.CKO_PRIVATE_KEY, t.config.keyLabel, id)
	switch {
	case err != nil:
		return 0, err
	case len(found) == 0:
		return 0, fmt.Errorf("the token %q has no private key with %s", t.config.token, t.config.key())
	case len(found) > 1:
		return 0, fmt.Errorf("the token %q has %d private keys with %s (%s); give the ID and label of one",
			t.config.token, len(found), t.config.key(), t.describe(handle, found))
	}
	always, err := t.attributes(handle, found[0], pkcs11.CKA_ALWAYS_AUTHENTICATE)
	switch {
	case err != nil:
		return 0, err
	case len(always[0]) == 1 && always[0][0] != 0:
		return 0, fmt.Errorf("the private key with %s wants the PIN for every signature; only one without CKA_ALWAYS_AUTHENTICATE can sign here", t.config.key())
	}
	return found[0], nil
}

// search returns at most some objects: who looks for one wants to know how many there are, roughly.
func (t *token) search(handle pkcs11.SessionHandle, class uint, label string, id []byte) (found []pkcs11.ObjectHandle, err error) {
	template := []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_CLASS, class)}
	if label != "" {
		template = append(template, pkcs11.NewAttribute(pkcs11.CKA_LABEL, label))
	}
	if len(id) > 0 {
		template = append(template, pkcs11.NewAttribute(pkcs11.CKA_ID, id))
	}
	if err := t.lib.FindObjectsInit(handle, template); err != nil {
		return nil, fmt.Errorf("looking for a key: %w", err)
	}
	defer func() { err = errors.Join(err, t.lib.FindObjectsFinal(handle)) }()
	for {
		some, _, err := t.lib.FindObjects(handle, 10) // a token may return fewer than there are
		if err != nil {
			return nil, fmt.Errorf("looking for a key: %w", err)
		}
		found = append(found, some...)
		if len(some) == 0 || len(found) >= 10 {
			return found, nil
		}
	}
}

// describe lists the labels and IDs of keys.
func (t *token) describe(handle pkcs11.SessionHandle, keys []pkcs11.ObjectHandle) string {
	var all []string
	for _, key := range keys {
		if values, err := t.attributes(handle, key, pkcs11.CKA_LABEL, pkcs11.CKA_ID); err == nil {
			all = append(all, fmt.Sprintf("label %q, ID %x", values[0], values[1]))
		}
	}
	return strings.Join(all, "; ")
}

// attributes are nil where an object has none: tokens differ in how they say so, and some do for all that are asked for
// at once.
func (t *token) attributes(handle pkcs11.SessionHandle, object pkcs11.ObjectHandle, names ...uint) ([][]byte, error) {
	values := make([][]byte, len(names))
	for i, name := range names {
		got, err := t.lib.GetAttributeValue(handle, object, []*pkcs11.Attribute{pkcs11.NewAttribute(name, nil)})
		switch {
		case sessionLost(err) || tokenLost(err):
			return nil, fmt.Errorf("reading about a key: %w", err)
		case err == nil && len(got) == 1:
			values[i] = got[0].Value
		}
	}
	return values, nil
}

// publicKey reads the public key: of RSA from the private key itself, of ECDSA from the object beside it.
func (t *token) publicKey(s *session) (crypto.PublicKey, error) {
	private, err := t.attributes(s.handle, s.key, pkcs11.CKA_MODULUS, pkcs11.CKA_PUBLIC_EXPONENT, pkcs11.CKA_ID)
	if err != nil {
		return nil, err
	}
	if len(private[0]) > 0 && len(private[1]) > 0 {
		return rsaKey(private[0], private[1])
	}
	id, label := private[2], t.config.keyLabel
	if len(id) > 0 {
		label = "" // the two of a pair have the same ID, PKCS #11 says, but not always the same label
	}
	found, err := t.search(s.handle, pkcs11.CKO_PUBLIC_KEY, label, id)
	switch {
	case err != nil:
		return nil, err
	case len(found) != 1:
		return nil, fmt.Errorf("the private key with %s must have exactly one public key of the same ID beside it; there are %d", t.config.key(), len(found))
	}
	public, err := t.attributes(s.handle, found[0], pkcs11.CKA_MODULUS, pkcs11.CKA_PUBLIC_EXPONENT, pkcs11.CKA_EC_PARAMS, pkcs11.CKA_EC_POINT)
	switch {
	case err != nil:
		return nil, err
	case len(public[0]) > 0 && len(public[1]) > 0:
		return rsaKey(public[0], public[1])
	}
	return ecdsaKey(public[2], public[3])
}

func rsaKey(modulus, exponent []byte) (crypto.PublicKey, error) {
	n, e := new(big.Int).SetBytes(modulus), new(big.Int).SetBytes(exponent)
	if bits := n.BitLen(); bits < 2048 || bits > 8192 || e.BitLen() > 31 {
		return nil, fmt.Errorf("the RSA key has %d bits and an exponent of %d; use 2048 to 8192 bits and 65537", bits, e.BitLen())
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
}

func ecdsaKey(params, point []byte) (crypto.PublicKey, error) {
	var oid asn1.ObjectIdentifier
	if rest, err := asn1.Unmarshal(params, &oid); err != nil || len(rest) > 0 {
		return nil, errors.New("the key is neither RSA nor ECDSA on a curve with a name")
	}
	var curve elliptic.Curve
	switch oid.String() {
	case "1.2.840.10045.3.1.7":
		curve = elliptic.P256()
	case "1.3.132.0.34":
		curve = elliptic.P384()
	case "1.3.132.0.35":
		curve = elliptic.P521()
	default:
		return nil, fmt.Errorf("the key is on curve %s; use P-256, P-384 or P-521", oid)
	}
	// PKCS #11 wants the point in an OCTET STRING; some tokens forget it.
	if len(point) != 1+2*size(curve) {
		var inner []byte
		if rest, err := asn1.Unmarshal(point, &inner); err != nil || len(rest) > 0 {
			return nil, errors.New("the public key's point cannot be read")
		}
		point = inner
	}
	key, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return nil, fmt.Errorf("reading the public key's point: %w", err)
	}
	return key, nil
}

// size is that of a coordinate in bytes.
func size(curve elliptic.Curve) int { return (curve.Params().BitSize + 7) / 8 }

func same(a, b crypto.PublicKey) bool {
	public, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(b)
}
