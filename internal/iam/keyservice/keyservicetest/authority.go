// SPDX-License-Identifier: Apache-2.0

// Package keyservicetest has the authority of an account for tests: certificates of callers, good ones and others.
package keyservicetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/caller"
)

// Credential is keyservice.Credential, into which it can be converted; the tests of that package use this one, too.
type Credential struct{ CA, File string }

// Authority signs for the account and its callers.
type Authority struct {
	dir    string
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	serial atomic.Int64
}

// New makes an authority, in a directory of its own.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir()}
	a.serial.Store(1)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "account of a test"}, SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * 365 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	a.cert, a.key = sign(t, template, template, nil)
	a.write(t, a.ca(), block(t, "CERTIFICATE", a.cert.Raw))
	return a
}

// Account is the credential of the account itself.
func (a *Authority) Account(t testing.TB) Credential {
	t.Helper()
	return a.Issue(t, func(c *x509.Certificate) {
		c.Subject.CommonName, c.DNSNames, c.ExtKeyUsage = "muster:account", []string{caller.ServerName}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
}

// Caller is the credential of somebody who asks.
func (a *Authority) Caller(t testing.TB, who caller.Caller) Credential {
	t.Helper()
	return a.Issue(t, func(c *x509.Certificate) { c.Subject.CommonName, c.Subject.Organization = who.Subject() })
}

// Issue signs a client certificate of a day that was changed as wanted.
func (a *Authority) Issue(t testing.TB, change func(*x509.Certificate)) Credential {
	t.Helper()
	serial := a.serial.Add(1)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	change(template)
	cert, key := sign(t, template, a.cert, a.key)
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(a.dir, strconv.FormatInt(serial, 10)+".pem")
	a.write(t, path, append(block(t, "CERTIFICATE", cert.Raw), block(t, "EC PRIVATE KEY", encoded)...))
	return Credential{CA: a.ca(), File: path}
}

func (a *Authority) ca() string { return filepath.Join(a.dir, "ca.pem") }

func (a *Authority) write(t testing.TB, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// sign makes a key and signs its certificate; without the parent's key, with its own.
func sign(t testing.TB, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parentKey == nil {
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func block(t testing.TB, kind string, raw []byte) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}
