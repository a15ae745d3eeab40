// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// Algorithm is that of signatures, by its name in the headers of tokens (RFC 7518, section 3.1). A cluster keeps the
// one that its first key has: its verifiers know that one.
type Algorithm string

const (
	// RS256 is that of new clusters, as of EKS's: every verifier knows it.
	RS256 Algorithm = "RS256"
	// ES256 is that of clusters that were made before RS256 was.
	ES256 Algorithm = "ES256"
)

const (
	rsaBits    = 2048 // as EKS's keys have
	maxRSABits = 4096
	half       = 32 // of a signature by P-256
)

// generate makes a private key.
func generate(algorithm Algorithm, random io.Reader) (crypto.Signer, error) {
	var key crypto.Signer
	var err error
	switch algorithm {
	case RS256:
		key, err = rsa.GenerateKey(random, rsaBits)
	case ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), random)
	default:
		err = fmt.Errorf("unknown algorithm %q: must be %s or %s", algorithm, RS256, ES256)
	}
	if err != nil {
		return nil, fmt.Errorf("making a key of service account tokens: %w", err)
	}
	return key, nil
}

// algorithmOf is the algorithm that a public key verifies.
func algorithmOf(public crypto.PublicKey) (Algorithm, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits >= rsaBits && bits <= maxRSABits {
			return RS256, nil
		}
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return ES256, nil
		}
	}
	return "", fmt.Errorf("must be an RSA key of %d to %d bits or an ECDSA key on P-256", rsaBits, maxRSABits)
}

// Sign signs a text as tokens are signed (RFC 7518, sections 3.3 and 3.4).
func (k Key) Sign(text string) ([]byte, error) {
	digest := sha256.Sum256([]byte(text))
	switch key := k.Private.(type) {
	case *rsa.PrivateKey:
		return rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			return nil, err
		}
		signature := make([]byte, 2*half)
		r.FillBytes(signature[:half])
		s.FillBytes(signature[half:])
		return signature, nil
	default:
		return nil, errors.New("the key has no private part")
	}
}
