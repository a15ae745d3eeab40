// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// parseCertificate reads the certificate of an authority. The file may hold more than its part (one file may hold
// both), but exactly one certificate: with two, the order would decide which one signs.
func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, err := only(data, func(kind string) bool { return kind == "CERTIFICATE" })
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the certificate: %w", err)
	case !certificate.IsCA || !certificate.BasicConstraintsValid:
		return nil, errors.New("the certificate is not a certificate authority's")
	case certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, errors.New("the certificate may not sign others")
	}
	return certificate, nil
}

// parseKey reads the one private key.
func parseKey(data []byte) (Key, error) {
	block, err := only(data, func(kind string) bool { return strings.HasSuffix(kind, "PRIVATE KEY") })
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	var key any
	switch block.Type {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("the private key is a %s; use PKCS #8, SEC 1 or PKCS #1 without a password", block.Type)
	}
	if err != nil { // crypto/x509 does not quote keys
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return inMemory{s}, nil
}

// only returns the one block of the wanted kind.
func only(data []byte, wanted func(string) bool) (*pem.Block, error) {
	var found *pem.Block
	for {
		var b *pem.Block
		b, data = pem.Decode(data)
		switch {
		case b == nil && found == nil:
			return nil, errors.New("no PEM block found")
		case b == nil:
			return found, nil
		case !wanted(b.Type):
		case found != nil:
			return nil, errors.New("there are two; keep one")
		default:
			found = b
		}
	}
}
