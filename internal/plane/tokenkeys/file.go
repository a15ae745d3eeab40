// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	kjson "sigs.k8s.io/json"

	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/platform/atomicfile"
)

const (
	version = 1
	maxFile = 256 << 10

	publicType = "PUBLIC KEY"
)

// privateTypes are the types of PEM blocks with private keys: PKCS #1 and SEC 1.
var privateTypes = map[Algorithm]string{RS256: "RSA PRIVATE KEY", ES256: "EC PRIVATE KEY"}

// record is the file's form.
type record struct {
	Version int         `json:"version"`
	Keys    []keyRecord `json:"keys"`
}

type keyRecord struct {
	Created time.Time `json:"created"`
	Signs   time.Time `json:"signs"`
	Public  string    `json:"public"`
	Private string    `json:"private,omitempty"`
}

// Read reads a ring. The error is fs.ErrNotExist if there is none.
func Read(path string) (Ring, error) {
	file, err := os.Open(path)
	if err != nil {
		return Ring{}, fmt.Errorf("reading the keys of service account tokens: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return Ring{}, fmt.Errorf("reading the keys of service account tokens: %w", err)
	}
	r, err := Parse(raw)
	if err != nil {
		return Ring{}, fmt.Errorf("%s is damaged: %w; restore it from a backup", path, err)
	}
	return r, nil
}

// Write replaces the file as a whole, and returns when it is on disk.
func Write(path string, r Ring) error {
	raw, err := Format(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, raw, 0o600)
}

// Parse reads a file's content strictly: a key must fit its other half, and the order must be that in which they sign.
func Parse(raw []byte) (Ring, error) {
	if len(raw) > maxFile {
		return Ring{}, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	var file record
	strict, err := kjson.UnmarshalStrict(raw, &file)
	switch {
	case err != nil:
		return Ring{}, err
	case len(strict) > 0:
		return Ring{}, strict[0]
	case file.Version != version:
		return Ring{}, fmt.Errorf("version is %d, and this Muster knows %d", file.Version, version)
	case len(file.Keys) == 0 || len(file.Keys) > maxKeys:
		return Ring{}, fmt.Errorf("keys: there are %d, and there must be 1 to %d", len(file.Keys), maxKeys)
	}
	var r Ring
	for i, k := range file.Keys {
		key, err := k.read()
		if err != nil {
			return Ring{}, fmt.Errorf("keys[%d]: %w", i, err)
		}
		if i > 0 && !key.Signs.After(r.keys[i-1].Signs) {
			return Ring{}, fmt.Errorf("keys[%d].signs: must be after that of the key before", i)
		}
		r.keys = append(r.keys, key)
	}
	if r.keys[len(r.keys)-1].Private == nil {
		return Ring{}, errors.New("the last key has no private part")
	}
	return r, nil
}

func (k keyRecord) read() (Key, error) {
	if k.Created.IsZero() || k.Signs.Before(k.Created) {
		return Key{}, errors.New("created must be there, and not after signs")
	}
	der, err := decodePEM(k.Public, publicType)
	if err != nil {
		return Key{}, fmt.Errorf("public: %w", err)
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return Key{}, fmt.Errorf("public: %w", err)
	}
	algorithm, err := algorithmOf(parsed)
	if err != nil {
		return Key{}, fmt.Errorf("public: %w", err)
	}
	id, err := issuer.KeyID(parsed)
	if err != nil {
		return Key{}, fmt.Errorf("public: %w", err)
	}
	key := Key{ID: id, Algorithm: algorithm, Public: parsed, Created: k.Created.UTC(), Signs: k.Signs.UTC()}
	if k.Private == "" {
		return key, nil
	}
	if der, err = decodePEM(k.Private, privateTypes[algorithm]); err != nil {
		return Key{}, fmt.Errorf("private: %w", err)
	}
	if key.Private, err = parsePrivate(algorithm, der); err != nil {
		return Key{}, err
	}
	if own, ok := key.Private.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !own.Equal(parsed) {
		return Key{}, errors.New("private: is not the other half of public")
	}
	return key, nil
}

// parsePrivate reads a private key. Errors of the parsers are not passed on: they may quote what they read.
func parsePrivate(algorithm Algorithm, der []byte) (crypto.Signer, error) {
	switch algorithm {
	case RS256:
		if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
			return key, nil
		}
	case ES256:
		if key, err := x509.ParseECPrivateKey(der); err == nil {
			return key, nil
		}
	}
	return nil, fmt.Errorf("private: is not a private key of %s", algorithm)
}

// formatPrivate is the inverse of parsePrivate.
func formatPrivate(private crypto.Signer) ([]byte, error) {
	switch key := private.(type) {
	case *rsa.PrivateKey:
		return x509.MarshalPKCS1PrivateKey(key), nil
	case *ecdsa.PrivateKey:
		return x509.MarshalECPrivateKey(key)
	default:
		return nil, fmt.Errorf("key of type %T: must be RSA or ECDSA", private)
	}
}

func decodePEM(text, kind string) ([]byte, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != kind || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("must be one PEM block %q", kind)
	}
	return block.Bytes, nil
}

// Format is the file's content.
func Format(r Ring) ([]byte, error) {
	file := record{Version: version}
	for _, k := range r.keys {
		public, err := PublicPEM(k)
		if err != nil {
			return nil, err
		}
		one := keyRecord{Created: k.Created, Signs: k.Signs, Public: string(public)}
		if k.Private != nil {
			der, err := formatPrivate(k.Private)
			if err != nil {
				return nil, fmt.Errorf("encoding a key of service account tokens: %w", err)
			}
			one.Private = string(pem.EncodeToMemory(&pem.Block{Type: privateTypes[k.Algorithm], Bytes: der}))
		}
		file.Keys = append(file.Keys, one)
	}
	raw, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the keys of service account tokens: %w", err)
	}
	return append(raw, '\n'), nil
}

// PublicPEM is the public part of a key.
func PublicPEM(k Key) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.Public)
	if err != nil {
		return nil, fmt.Errorf("encoding a key of service account tokens: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicType, Bytes: der}), nil
}
