// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"fmt"
)

// Algorithm of a public key.
type Algorithm string

// The algorithms there are.
const (
	ECDSA   Algorithm = "ECDSA"
	RSA     Algorithm = "RSA"
	Ed25519 Algorithm = "Ed25519"
)

// The sizes of RSA keys that are neither too weak nor so large that verifying them is a way to keep a server busy.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// Key describes a public key.
type Key struct {
	Algorithm Algorithm
	Bits      int
}

func (k Key) String() string { return fmt.Sprintf("%s %d", k.Algorithm, k.Bits) }

func describeKey(public any) (Key, error) {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return Key{ECDSA, k.Curve.Params().BitSize}, weakECDSA(k)
		}
		return Key{}, fmt.Errorf("the key is on curve %s; use P-256, P-384 or P-521", k.Curve.Params().Name)
	case *rsa.PublicKey:
		bits := k.N.BitLen()
		if bits < minRSABits || bits > maxRSABits {
			return Key{}, fmt.Errorf("the RSA key has %d bits; use %d to %d", bits, minRSABits, maxRSABits)
		}
		if k.E < 65537 || k.E%2 == 0 { // FIPS 186-5, 5.4 (e): small exponents have a history
			return Key{}, fmt.Errorf("the RSA key has exponent %d; use 65537", k.E)
		}
		return Key{RSA, bits}, weakRSA(k)
	case ed25519.PublicKey:
		return Key{Ed25519, 256}, nil
	default:
		return Key{}, fmt.Errorf("the key is a %T; use ECDSA or RSA", public)
	}
}
