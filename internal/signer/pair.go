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

// pair is a certificate authority: its certificate and its key.
type pair struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// parsePair reads both. Files may hold more than their part (one file may hold both), but exactly one certificate and one key:
// with two, the order would decide who signs.
func parsePair(certPEM, keyPEM []byte) (*pair, error) {
	certs, err := blocks(certPEM, func(kind string) bool { return kind == "CERTIFICATE" })
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	keys, err := blocks(keyPEM, func(kind string) bool { return strings.HasSuffix(kind, "PRIVATE KEY") })
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	certificate, err := x509.ParseCertificate(certs.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	key, err := parseKey(keys)
	if err != nil {
		return nil, err
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !public.Equal(certificate.PublicKey):
		return nil, errors.New("the private key is not the certificate's")
	case !certificate.IsCA || !certificate.BasicConstraintsValid:
		return nil, errors.New("the certificate is not a certificate authority's")
	case certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, errors.New("the certificate may not sign others")
	}
	return &pair{certificate, key}, nil
}

// blocks returns the one block of the wanted kind.
func blocks(data []byte, wanted func(string) bool) (*pem.Block, error) {
	var found *pem.Block
	for {
		var b *pem.Block
		b, data = pem.Decode(data)
		switch {
		case b == nil && found == nil:
			return nil, errors.New("there is none in PEM")
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

func parseKey(b *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch b.Type {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(b.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(b.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(b.Bytes)
	default:
		return nil, fmt.Errorf("the private key is a %s; use PKCS #8, SEC 1 or PKCS #1 without a password", b.Type)
	}
	if err != nil { // crypto/x509 does not quote keys
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return s, nil
}
