// SPDX-License-Identifier: Apache-2.0

// Package sshkey reads and makes SSH keys as EC2's key pairs have them: public keys in OpenSSH's format, EC2's
// fingerprints, and new private keys.
package sshkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/md5" //nolint:gosec // G501: EC2's fingerprint of an imported RSA key
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // G505: EC2's fingerprint of an RSA key that it made
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// The types of keys, as EC2 calls them.
const (
	RSA     = "rsa"
	ED25519 = "ed25519"
)

// rsaBits is how long a new RSA key is.
const rsaBits = 2048

// Public is a public key.
type Public struct {
	Type string // RSA or ED25519
	wire []byte // RFC 4253, section 6.6; RFC 8709
	rsa  *rsa.PublicKey
}

// ErrFormat says that a text is not a public key that EC2 imports.
var ErrFormat = errors.New("Key is not in valid OpenSSH public key format") //nolint:staticcheck // EC2's words

// Parse reads a public key as ssh-keygen writes it: "ssh-ed25519 AAAA… comment".
func Parse(text string) (Public, error) {
	words := strings.Fields(text)
	if len(words) < 2 || strings.Contains(strings.TrimSpace(text), "\n") {
		return Public{}, ErrFormat
	}
	wire, err := base64.StdEncoding.DecodeString(words[1])
	if err != nil {
		return Public{}, ErrFormat
	}
	parts, err := split(wire)
	if err != nil || len(parts) == 0 || string(parts[0]) != words[0] {
		return Public{}, ErrFormat
	}
	switch {
	case words[0] == "ssh-ed25519" && len(parts) == 2 && len(parts[1]) == ed25519.PublicKeySize:
		return Public{Type: ED25519, wire: wire}, nil
	case words[0] == "ssh-rsa" && len(parts) == 3:
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(parts[2])}
		if e := new(big.Int).SetBytes(parts[1]); e.IsInt64() && e.Int64() > 1 && e.Int64() < 1<<31 {
			key.E = int(e.Int64())
		}
		if key.E == 0 || !slices.Contains([]int{1024, 2048, 4096}, key.N.BitLen()) {
			return Public{}, fmt.Errorf("an RSA key has 1024, 2048 or 4096 bits, and this one %d", key.N.BitLen())
		}
		return Public{Type: RSA, wire: wire, rsa: key}, nil
	}
	return Public{}, ErrFormat
}

// split takes the strings of a key on the wire apart.
func split(wire []byte) ([][]byte, error) {
	var parts [][]byte
	for len(wire) > 0 {
		if len(wire) < 4 {
			return nil, ErrFormat
		}
		n := binary.BigEndian.Uint32(wire)
		if int64(n) > int64(len(wire)-4) || len(parts) == 3 {
			return nil, ErrFormat
		}
		parts = append(parts, wire[4:4+n])
		wire = wire[4+n:]
	}
	return parts, nil
}

func join(parts ...[]byte) []byte {
	var wire []byte
	for _, part := range parts {
		wire = binary.BigEndian.AppendUint32(wire, uint32(len(part))) //nolint:gosec // G115: of a key
		wire = append(wire, part...)
	}
	return wire
}

// String is the key in OpenSSH's format, without a comment.
func (p Public) String() string {
	name := "ssh-" + p.Type
	return name + " " + base64.StdEncoding.EncodeToString(p.wire)
}

// Fingerprint is EC2's of a key that was imported.
func (p Public) Fingerprint() (string, error) {
	if p.Type == ED25519 {
		sum := sha256.Sum256(p.wire)
		return base64.StdEncoding.EncodeToString(sum[:]), nil
	}
	der, err := x509.MarshalPKIXPublicKey(p.rsa)
	if err != nil {
		return "", fmt.Errorf("encoding the public key: %w", err)
	}
	sum := md5.Sum(der) //nolint:gosec // G401: see above
	return colons(sum[:]), nil
}

func colons(sum []byte) string {
	pairs := make([]string, len(sum))
	for i, b := range sum {
		pairs[i] = hex.EncodeToString([]byte{b})
	}
	return strings.Join(pairs, ":")
}

// New makes a key: its public half, the private one as a PEM file, and EC2's fingerprint of a key that it made.
func New(kind string) (public Public, private, fingerprint string, err error) {
	if kind == ED25519 {
		return newED25519()
	}
	key, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return Public{}, "", "", fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Public{}, "", "", fmt.Errorf("encoding a key: %w", err)
	}
	sum := sha1.Sum(der) //nolint:gosec // G401: see above
	// A number on the wire has its sign in the first bit.
	public = Public{RSA, join([]byte("ssh-rsa"), big.NewInt(int64(key.E)).Bytes(), append([]byte{0}, key.N.Bytes()...)), &key.PublicKey}
	private = string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	return public, private, colons(sum[:]), nil
}

// newED25519 makes a key whose file is in OpenSSH's own format (PROTOCOL.key of OpenSSH), without a passphrase.
func newED25519() (public Public, private, fingerprint string, err error) {
	half, whole, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Public{}, "", "", fmt.Errorf("making a key: %w", err)
	}
	public = Public{Type: ED25519, wire: join([]byte("ssh-ed25519"), half)}
	check := make([]byte, 4)
	_, _ = rand.Read(check) // never fails
	secret := append(append(bytes.Clone(check), check...), join([]byte("ssh-ed25519"), half, whole, nil)...)
	for pad := byte(1); len(secret)%8 != 0; pad++ {
		secret = append(secret, pad)
	}
	file := append([]byte("openssh-key-v1\x00"), join([]byte("none"), []byte("none"), nil)...)
	file = binary.BigEndian.AppendUint32(file, 1)
	file = append(file, join(public.wire, secret)...)
	private = string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: file}))
	fingerprint, err = public.Fingerprint()
	return public, private, fingerprint, err
}
