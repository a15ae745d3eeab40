// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"k8s.io/client-go/util/keyutil"
)

// minRSABits is what verifiers take at least (RFC 7518, section 3.3).
const minRSABits = 2048

// Documents are what an issuer publishes, rendered.
type Documents struct {
	Discovery []byte
	Keys      []byte
}

// jwk is a public key in the form and the order of kube-apiserver's (RFC 7517; go-jose's rawJSONWebKey).
type jwk struct {
	Use string `json:"use"`
	Kty string `json:"kty"`
	Kid string `json:"kid"`
	Crv string `json:"crv,omitempty"`
	Alg string `json:"alg"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
}

type keySet struct {
	Keys []jwk `json:"keys"`
}

// discovery is what kube-apiserver says at the same path (pkg/serviceaccount/openidmetadata.go), and the two fields
// that EKS has besides: OpenID Connect requires authorization_endpoint, though nobody logs in here.
type discovery struct {
	Issuer        string   `json:"issuer"`
	JWKSURI       string   `json:"jwks_uri"`
	Authorization string   `json:"authorization_endpoint"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	Claims        []string `json:"claims_supported"`
}

// Render makes the documents of an issuer from the PEM files that kube-apiserver verifies tokens with: public keys, or
// private keys, whose public parts are used.
func Render(i Issuer, files ...[]byte) (Documents, error) {
	var set keySet
	var algorithms []string
	for _, raw := range files {
		keys, err := keyutil.ParsePublicKeysPEM(raw)
		if err != nil {
			return Documents{}, fmt.Errorf("reading the keys of service account tokens: %w", err)
		}
		for _, key := range keys {
			public, err := encode(key)
			if err != nil {
				return Documents{}, fmt.Errorf("publishing a key of service account tokens: %w", err)
			}
			if slices.ContainsFunc(set.Keys, func(other jwk) bool { return other.Kid == public.Kid }) {
				continue
			}
			set.Keys = append(set.Keys, public)
			algorithms = append(algorithms, public.Alg)
		}
	}
	if len(set.Keys) == 0 {
		return Documents{}, errors.New("there is no key of service account tokens to be published")
	}
	slices.Sort(algorithms)
	var documents Documents
	var err error
	if documents.Keys, err = json.Marshal(set); err != nil {
		return Documents{}, fmt.Errorf("encoding the key set: %w", err)
	}
	documents.Discovery, err = json.Marshal(discovery{
		Issuer: i.String(), JWKSURI: i.Keys(), Authorization: "urn:kubernetes:programmatic_authorization",
		ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"}, Algorithms: slices.Compact(algorithms), Claims: []string{"sub", "iss"},
	})
	if err != nil {
		return Documents{}, fmt.Errorf("encoding the discovery document: %w", err)
	}
	return documents, nil
}

// encode makes the JSON Web Key of a key that kube-apiserver would sign with (pkg/serviceaccount/jwt.go).
func encode(key any) (jwk, error) {
	id, err := KeyID(key)
	if err != nil {
		return jwk{}, err
	}
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSABits {
			return jwk{}, fmt.Errorf("RSA key of %d bits: must have %d at least", k.N.BitLen(), minRSABits)
		}
		return jwk{Use: "sig", Kty: "RSA", Kid: id, Alg: "RS256", N: encoded(k.N.Bytes()), E: encoded(big.NewInt(int64(k.E)).Bytes())}, nil
	case *ecdsa.PublicKey:
		algorithm := map[elliptic.Curve]string{elliptic.P256(): "ES256", elliptic.P384(): "ES384", elliptic.P521(): "ES512"}[k.Curve]
		if algorithm == "" {
			return jwk{}, fmt.Errorf("key on curve %s: must be P-256, P-384 or P-521", k.Params().Name)
		}
		point, err := k.Bytes() // 4, x, y: x and y as long as the curve's field (SEC 1, section 2.3.3)
		if err != nil {
			return jwk{}, err
		}
		x, y := point[1:1+len(point)/2], point[1+len(point)/2:]
		return jwk{Use: "sig", Kty: "EC", Kid: id, Crv: k.Params().Name, Alg: algorithm, X: encoded(x), Y: encoded(y)}, nil
	default:
		return jwk{}, fmt.Errorf("key of type %T: must be RSA or ECDSA", key)
	}
}

// KeyID names a public key as kube-apiserver does in the header of a token (keyIDFromPublicKey in
// pkg/serviceaccount/jwt.go).
func KeyID(key any) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return encoded(sum[:]), nil
}

func encoded(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
