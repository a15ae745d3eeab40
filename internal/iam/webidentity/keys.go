// SPDX-License-Identifier: Apache-2.0

package webidentity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"

	"muster.dev/muster/internal/iam/tokenrefusal"
)

const (
	// MaxDocument is how long a document of an issuer may be, in bytes.
	MaxDocument = 256 << 10
	// maxKeys is how many keys an issuer may publish, as for IAM.
	maxKeys    = 100
	minRSABits = 2048 // RFC 7518, section 3.3
	maxRSABits = 8192 // crypto/rsa takes no larger ones
)

// Keys are the public keys of an issuer, by id.
type Keys struct{ byID map[string]key }

type key struct {
	algorithm string
	public    crypto.PublicKey
}

// IDs are the ids of the keys, sorted.
func (k Keys) IDs() []string {
	ids := make([]string, 0, len(k.byID))
	for id := range k.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Has reports whether there is a key of an id.
func (k Keys) Has(id string) bool { _, ok := k.byID[id]; return ok }

// jwk is what is read of a JSON Web Key.
type jwk struct {
	Kty string `json:"kty"`
	Use string `json:"use"`
	Kid string `json:"kid"`
	Alg string `json:"alg"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	Y   string `json:"y"`
	N   string `json:"n"`
	E   string `json:"e"`
}

// ParseKeys reads a JSON Web Key Set (RFC 7517). Keys that are for something else, or of a kind that is not verified
// here, are left out.
func ParseKeys(raw []byte) (Keys, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if len(raw) > MaxDocument {
		return Keys{}, fmt.Errorf("reading the keys of an issuer: %d bytes, and %d are allowed", len(raw), MaxDocument)
	}
	if err := strict(raw, &set); err != nil {
		return Keys{}, fmt.Errorf("reading the keys of an issuer: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return Keys{}, fmt.Errorf("reading the keys of an issuer: there are %d, and %d are allowed", len(set.Keys), maxKeys)
	}
	keys := Keys{byID: map[string]key{}}
	for i, j := range set.Keys {
		if j.Kid == "" || j.Use != "" && j.Use != "sig" {
			continue
		}
		public, known, err := j.read()
		switch {
		case err != nil:
			return Keys{}, fmt.Errorf("reading key %d of an issuer, %s: %w", i+1, tokenrefusal.Quote(j.Kid), err)
		case !known:
			continue
		}
		if _, twice := keys.byID[j.Kid]; twice {
			return Keys{}, fmt.Errorf("reading the keys of an issuer: two have the id %s", tokenrefusal.Quote(j.Kid))
		}
		keys.byID[j.Kid] = public
	}
	return keys, nil
}

// read makes the key. known is false for kinds of keys that are not verified here.
func (j jwk) read() (k key, known bool, err error) {
	switch {
	case j.Kty == "RSA" && (j.Alg == "" || j.Alg == RS256):
		k, err = j.rsa()
	case j.Kty == "EC" && j.Crv == "P-256" && (j.Alg == "" || j.Alg == ES256):
		k, err = j.ec()
	default:
		return key{}, false, nil
	}
	return k, true, err
}

func (j jwk) rsa() (key, error) {
	n, err := number(j.N)
	if err != nil {
		return key{}, fmt.Errorf("n: %w", err)
	}
	e, err := number(j.E)
	if err != nil {
		return key{}, fmt.Errorf("e: %w", err)
	}
	switch bits := n.BitLen(); {
	case bits < minRSABits || bits > maxRSABits:
		return key{}, fmt.Errorf("RSA key of %d bits: must have %d to %d", bits, minRSABits, maxRSABits)
	case e.BitLen() > 31 || e.Int64() < 3 || e.Bit(0) == 0:
		return key{}, errors.New("exponent of an RSA key: must be odd and from 3 to 2147483647")
	}
	return key{RS256, &rsa.PublicKey{N: n, E: int(e.Int64())}}, nil
}

func (j jwk) ec() (key, error) {
	const size = 32
	x, errX := decode(j.X)
	y, errY := decode(j.Y)
	if errX != nil || errY != nil || len(x) != size || len(y) != size {
		return key{}, fmt.Errorf("x and y: must be %d bytes each in base64 for URLs, without padding", size)
	}
	point := slices.Concat([]byte{4}, x, y) // not compressed (SEC 1, section 2.3.3)
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return key{}, fmt.Errorf("point on P-256: %w", err)
	}
	return key{ES256, public}, nil
}

func number(text string) (*big.Int, error) {
	raw, err := decode(text)
	if err != nil || len(raw) == 0 {
		return nil, errors.New("must be a number in base64 for URLs, without padding")
	}
	return new(big.Int).SetBytes(raw), nil
}

func decode(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("line breaks")
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}

// Discovery is what is read of the document at ISSUER/.well-known/openid-configuration.
type Discovery struct {
	// Issuer is what the issuer calls itself. The caller must compare it (OpenID Connect Discovery, section 4.3).
	Issuer string
	Keys   string // the URL of the keys
}

// ParseDiscovery reads a discovery document.
func ParseDiscovery(raw []byte) (Discovery, error) {
	var d struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if len(raw) > MaxDocument {
		return Discovery{}, fmt.Errorf("reading discovery document: %d bytes, and %d are allowed", len(raw), MaxDocument)
	}
	if err := strict(raw, &d); err != nil {
		return Discovery{}, fmt.Errorf("reading discovery document: %w", err)
	}
	if d.Issuer == "" || len(d.Issuer) > maxText {
		return Discovery{}, fmt.Errorf("discovery document has the issuer %s: must be a URL of at most %d bytes", tokenrefusal.Quote(d.Issuer), maxText)
	}
	u, err := url.Parse(d.Keys)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || len(d.Keys) > maxText {
		return Discovery{}, fmt.Errorf("discovery document has the jwks_uri %s: must be an https URL without a user or a fragment", tokenrefusal.Quote(d.Keys))
	}
	return Discovery{d.Issuer, d.Keys}, nil
}
