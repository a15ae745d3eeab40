// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The messages of this process and its child, one JSON object a line: the child its greeting, and then for every
// request an answer, in any order. The other half is in the module pkcs11, which shares nothing with this one but these
// lines.

const (
	wireVersion = 1
	maxLine     = 16 << 10 // an RSA signature of 8192 bits has 1 KiB
)

type greeting struct {
	Version int    `json:"version"`
	Public  []byte `json:"public,omitempty"` // SubjectPublicKeyInfo
	Error   *fault `json:"error,omitempty"`
}

type request struct {
	ID      uint64 `json:"id"`
	Hash    string `json:"hash"`
	Padding string `json:"padding,omitempty"` // of RSA: pkcs1v15 or pss
	Salt    int    `json:"salt,omitempty"`    // length, of pss
	Digest  []byte `json:"digest"`
}

type answer struct {
	ID        uint64 `json:"id"`
	Signature []byte `json:"signature,omitempty"`
	Error     *fault `json:"error,omitempty"`
}

// fault tells what went wrong. A PIN that is wrong must not be tried again; an unavailable token may be.
type fault struct {
	Kind    string `json:"kind,omitempty"` // pin, unavailable or empty
	Message string `json:"message"`
}

// errPIN comes with ErrUnavailable: another PIN in the file is all it takes.
var errPIN = errors.New("until the file of the PIN is another")

func (f *fault) err() error {
	switch f.Kind {
	case "pin":
		return fmt.Errorf("%w %w: %s", ErrUnavailable, errPIN, f.Message)
	case "unavailable":
		return fmt.Errorf("%w: %s", ErrUnavailable, f.Message)
	}
	return errors.New(f.Message)
}

// newRequest says what to sign in the words of the wire.
func newRequest(public crypto.PublicKey, digest []byte, opts crypto.SignerOpts) (request, error) {
	hash := opts.HashFunc()
	switch hash {
	case crypto.SHA256, crypto.SHA384, crypto.SHA512:
	default:
		return request{}, fmt.Errorf("a token signs SHA-256, SHA-384 and SHA-512 here, not %s", hash)
	}
	if len(digest) != hash.Size() {
		return request{}, fmt.Errorf("a digest of %d bytes is not one of %s", len(digest), hash)
	}
	r := request{Hash: hash.String(), Digest: digest}
	key, ok := public.(*rsa.PublicKey)
	if !ok {
		return r, nil
	}
	r.Padding = "pkcs1v15"
	pss, ok := opts.(*rsa.PSSOptions)
	if !ok {
		return r, nil
	}
	r.Padding = "pss"
	switch pss.SaltLength {
	case rsa.PSSSaltLengthEqualsHash:
		r.Salt = hash.Size()
	case rsa.PSSSaltLengthAuto: // as long as possible: RFC 8017, 9.1.1
		r.Salt = (key.N.BitLen()-1+7)/8 - 2 - hash.Size()
	default:
		r.Salt = pss.SaltLength
	}
	return r, nil
}

func (g greeting) key() (crypto.PublicKey, error) {
	switch {
	case g.Version != wireVersion:
		return nil, fmt.Errorf("it speaks version %d, not %d: it was not built together with this program", g.Version, wireVersion)
	case g.Error != nil:
		return nil, g.Error.err()
	}
	public, err := x509.ParsePKIXPublicKey(g.Public)
	if err != nil {
		return nil, fmt.Errorf("reading the public key: %w", err)
	}
	switch public.(type) {
	case *ecdsa.PublicKey, *rsa.PublicKey:
		return public, nil
	}
	return nil, fmt.Errorf("a %T is not supported in a token", public)
}

// readLine reads one object of the wire. io.EOF means that there was none.
func readLine(from *bufio.Reader, into any) error {
	line, err := from.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return io.EOF
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("a line of more than %d bytes", maxLine)
	case err != nil:
		return err
	case len(bytes.TrimSpace(line)) == 0:
		return errors.New("an empty line")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one object on a line")
	}
	return nil
}
