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
	// MaxList bounds a file of keys, and a list of public keys, in bytes.
	MaxList = 256 << 10

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
	// CanSign is of lists of public keys: the private part exists elsewhere.
	CanSign bool `json:"canSign,omitempty"`
}

// Read reads a ring with its private keys. The error is fs.ErrNotExist if there is none.
func Read(path string) (Ring, error) { return readFile(path, Parse) }

// ReadPublic reads a list of public keys. The error is fs.ErrNotExist if there is none.
func ReadPublic(path string) (Ring, error) { return readFile(path, ParsePublic) }

func readFile(path string, parse func([]byte) (Ring, error)) (Ring, error) {
	file, err := os.Open(path)
	if err != nil {
		return Ring{}, fmt.Errorf("reading the keys of service account tokens: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(file, MaxList+1))
	if err != nil {
		return Ring{}, fmt.Errorf("reading the keys of service account tokens: %w", err)
	}
	r, err := parse(raw)
	if err != nil {
		return Ring{}, fmt.Errorf("%s is damaged: %w; restore it from a backup", path, err)
	}
	return r, nil
}

// Write replaces the file of a ring with its private keys as a whole, and returns when it is on disk.
func Write(path string, r Ring) error {
	raw, err := Format(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, raw, 0o600)
}

// WritePublic replaces a list of public keys as a whole, and returns when it is on disk.
func WritePublic(path string, r Ring) error {
	raw, err := FormatPublic(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, raw, 0o600)
}

// Parse reads a file with private keys strictly: a key must fit its other half, and the order must be that in which
// they sign.
func Parse(raw []byte) (Ring, error) {
	r, err := parse(raw, keyRecord.read)
	if err == nil && !r.Last().CanSign {
		return Ring{}, errors.New("the last key has no private part")
	}
	return r, err
}

// ParsePublic reads a list of public keys as strictly. A private key in it is an error.
func ParsePublic(raw []byte) (Ring, error) {
	r, err := parse(raw, keyRecord.readPublic)
	if err == nil && !r.Last().CanSign {
		return Ring{}, errors.New("the last key cannot sign")
	}
	return r, err
}

func parse(raw []byte, read func(keyRecord) (Key, error)) (Ring, error) {
	if len(raw) > MaxList {
		return Ring{}, fmt.Errorf("it has more than %d bytes", MaxList)
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
		key, err := read(k)
		if err != nil {
			return Ring{}, fmt.Errorf("keys[%d]: %w", i, err)
		}
		if i > 0 && !key.Signs.After(r.keys[i-1].Signs) {
			return Ring{}, fmt.Errorf("keys[%d].signs: must be after that of the key before", i)
		}
		r.keys = append(r.keys, key)
	}
	return r, nil
}

// readPublic reads a record of a list of public keys.
func (k keyRecord) readPublic() (Key, error) {
	if k.Private != "" {
		return Key{}, errors.New("private: a list of public keys must not have any")
	}
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
	return Key{ID: id, Algorithm: algorithm, Public: parsed, CanSign: k.CanSign, Created: k.Created.UTC(), Signs: k.Signs.UTC()}, nil
}

// read reads a record of a file with private keys.
func (k keyRecord) read() (Key, error) {
	if k.CanSign {
		return Key{}, errors.New("canSign: is of lists of public keys alone")
	}
	private := k.Private
	k.Private = ""
	key, err := k.readPublic()
	if err != nil || private == "" {
		return key, err
	}
	der, err := decodePEM(private, privateTypes[key.Algorithm])
	if err != nil {
		return Key{}, fmt.Errorf("private: %w", err)
	}
	if key.Private, err = parsePrivate(key.Algorithm, der); err != nil {
		return Key{}, err
	}
	if own, ok := key.Private.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !own.Equal(key.Public) {
		return Key{}, errors.New("private: is not the other half of public")
	}
	key.CanSign = true
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

// Format is the content of a file with private keys.
func Format(r Ring) ([]byte, error) {
	return format(r, func(k Key, into *keyRecord) error {
		if k.Private == nil {
			return nil
		}
		der, err := formatPrivate(k.Private)
		if err != nil {
			return fmt.Errorf("encoding a key of service account tokens: %w", err)
		}
		into.Private = string(pem.EncodeToMemory(&pem.Block{Type: privateTypes[k.Algorithm], Bytes: der}))
		return nil
	})
}

// FormatPublic is a list of the public keys of a ring.
func FormatPublic(r Ring) ([]byte, error) {
	return format(r, func(k Key, into *keyRecord) error {
		into.CanSign = k.CanSign
		return nil
	})
}

func format(r Ring, more func(Key, *keyRecord) error) ([]byte, error) {
	file := record{Version: version}
	for _, k := range r.keys {
		public, err := PublicPEM(k)
		if err != nil {
			return nil, err
		}
		one := keyRecord{Created: k.Created, Signs: k.Signs, Public: string(public)}
		if err := more(k, &one); err != nil {
			return nil, err
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
