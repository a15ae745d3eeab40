// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/signer"
	"muster.dev/muster/internal/certificates/signer/signertest"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func certPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func keyPEM(t *testing.T, k any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// disk is a directory with a pair of files.
type disk struct {
	t         *testing.T
	cert, key string
	log       bytes.Buffer
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	dir := t.TempDir()
	return &disk{t: t, cert: filepath.Join(dir, "ca.crt"), key: filepath.Join(dir, "ca.key")}
}

// replace writes as careful programs do: a new file, renamed over the old.
func (d *disk) replace(name string, data []byte) {
	d.t.Helper()
	if err := os.WriteFile(name+".new", data, 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) write(c *x509.Certificate, k *ecdsa.PrivateKey) {
	d.t.Helper()
	d.replace(d.cert, certPEM(c))
	d.replace(d.key, keyPEM(d.t, k))
}

func (d *disk) open() (*signer.CA, error) {
	return signer.NewFile(signer.FileConfig{CertFile: d.cert, KeyFile: d.key, Logger: slog.New(slog.NewTextHandler(&d.log, nil))})
}

func (d *disk) mustOpen() *signer.CA {
	d.t.Helper()
	s, err := d.open()
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func prepare(t *testing.T, issuer *x509.Certificate) pki.Prepared {
	t.Helper()
	r, err := pki.Parse(pkitest.Kubelet(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := pki.Prepare(r, pki.Order{
		Profile: pki.ClientProfile(), Usages: []string{"digital signature", "client auth"},
		Serial: big.NewInt(7), Issuer: issuer, Duration: time.Hour, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// signsAs checks that s signs for the given authority.
func signsAs(t *testing.T, s signer.Signer, ca *x509.Certificate) {
	t.Helper()
	issuer, err := s.Issuer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Sign(t.Context(), prepare(t, issuer))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(out)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckSignatureFrom(ca); err != nil {
		t.Errorf("signed by another authority: %v", err)
	}
}

func TestFileReloadsAndKeepsTheOldPairMeanwhile(t *testing.T) {
	oldCA, oldKey := pkitest.Authority(t, "old", now, time.Hour)
	newCA, newKey := pkitest.Authority(t, "new", now, time.Hour)
	d := newDisk(t)
	d.write(oldCA, oldKey)
	s := d.mustOpen()
	signsAs(t, s, oldCA)

	prepared := prepare(t, oldCA)
	d.replace(d.cert, certPEM(newCA))
	signsAs(t, s, oldCA)
	signsAs(t, s, oldCA)
	if n := strings.Count(d.log.String(), "old pair goes on"); n != 1 {
		t.Errorf("the mismatch was logged %d times", n)
	}
	d.replace(d.key, keyPEM(t, newKey))
	signsAs(t, s, newCA)
	if _, err := s.Sign(t.Context(), prepared); !errors.Is(err, pki.ErrIssuerChanged) {
		t.Errorf("signed what was prepared for the old authority: %v", err)
	}

	if err := os.Remove(d.cert); err != nil {
		t.Fatal(err)
	}
	signsAs(t, s, newCA)
	d.replace(d.cert, []byte("half wri"))
	signsAs(t, s, newCA)
	d.write(oldCA, oldKey)
	signsAs(t, s, oldCA)
	if strings.Contains(d.log.String(), "PRIVATE") {
		t.Error("the log shows a key")
	}
}

func TestFileFollowsASymlinkThatIsPointedElsewhere(t *testing.T) {
	a, aKey := pkitest.Authority(t, "a", now, time.Hour)
	b, bKey := pkitest.Authority(t, "b", now, time.Hour)
	d := newDisk(t)
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	d.replace(one, append(certPEM(a), keyPEM(t, aKey)...))
	d.replace(two, append(keyPEM(t, bKey), certPEM(b)...))
	point := func(to string) {
		if err := os.Symlink(to, d.cert+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(d.cert+".new", d.cert); err != nil {
			t.Fatal(err)
		}
	}
	point(one)
	d.key = d.cert // both in one file
	s := d.mustOpen()
	signsAs(t, s, a)
	point(two)
	signsAs(t, s, b)
}

func TestFileIsOverwrittenInPlace(t *testing.T) {
	a, aKey := pkitest.Authority(t, "a", now, time.Hour)
	b, bKey := pkitest.Authority(t, "b", now, time.Hour)
	d := newDisk(t)
	d.write(a, aKey)
	s := d.mustOpen()
	if err := os.WriteFile(d.key, keyPEM(t, bKey), 0o600); err != nil {
		t.Fatal(err)
	}
	signsAs(t, s, a)
	if err := os.WriteFile(d.cert, certPEM(b), 0o600); err != nil {
		t.Fatal(err)
	}
	signsAs(t, s, b)
}

func TestFileWhileManySign(t *testing.T) {
	a, aKey := pkitest.Authority(t, "a", now, time.Hour)
	b, bKey := pkitest.Authority(t, "b", now, time.Hour)
	d := newDisk(t)
	d.write(a, aKey)
	s := d.mustOpen()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				issuer, err := s.Issuer(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := s.Sign(t.Context(), prepare(t, issuer)); err != nil && !errors.Is(err, pki.ErrIssuerChanged) {
					t.Error(err)
				}
			}
		})
	}
	d.write(b, bKey)
	group.Wait()
	signsAs(t, s, b)
}

func TestNewFileRefuses(t *testing.T) {
	ca, key := pkitest.Authority(t, "a", now, time.Hour)
	_, other := pkitest.Authority(t, "b", now, time.Hour)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: now}, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER})
	for _, tc := range []struct {
		name      string
		cert, key []byte
		want      string
	}{
		{"another's key", certPEM(ca), keyPEM(t, other), "not the certificate's"},
		{"a key of another kind", certPEM(ca), keyPEM(t, rsaKey), "not the certificate's"},
		{"two certificates", append(certPEM(ca), certPEM(ca)...), keyPEM(t, key), "there are two"},
		{"two keys", certPEM(ca), append(keyPEM(t, key), keyPEM(t, other)...), "there are two"},
		{"no certificate", nil, keyPEM(t, key), "no PEM block found"},
		{"no key", certPEM(ca), nil, "no PEM block found"},
		{"a certificate that is no authority", leaf, keyPEM(t, key), "not a certificate authority"},
		{"an encrypted key", certPEM(ca), pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}}), "without a password"},
		{"a broken key", certPEM(ca), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}}), "private key"},
		{"a broken certificate", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}), keyPEM(t, key), "certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDisk(t)
			d.replace(d.cert, tc.cert)
			d.replace(d.key, tc.key)
			if _, err := d.open(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := newDisk(t).open(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no files: %v", err)
	}
	if _, err := signer.NewFile(signer.FileConfig{}); err == nil {
		t.Error("no configuration: accepted")
	}
}

func TestNewFileReadsOldKeyFormats(t *testing.T) {
	ca, key := pkitest.Authority(t, "a", now, time.Hour)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	d := newDisk(t)
	d.replace(d.cert, certPEM(ca))
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 0}}) // as openssl ecparam writes
	d.replace(d.key, append(parameters, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})...))
	signsAs(t, d.mustOpen(), ca)
}

func TestFakeFailsOnDemand(t *testing.T) {
	ca, key := pkitest.Authority(t, "a", now, time.Hour)
	s := signertest.New(ca, key)
	want := errors.New("no")
	s.Fail(want)
	if _, err := s.Sign(t.Context(), prepare(t, ca)); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
	signsAs(t, s, ca)
	if s.Signed() != 1 {
		t.Errorf("signed %d", s.Signed())
	}
}
