// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
)

var lintNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func good(t *testing.T) (Prepared, crypto.Signer) {
	t.Helper()
	ca, key := pkitest.Authority(t, "kubernetes", lintNow, 1000*time.Hour)
	r, err := Parse(pkitest.Kubelet(t, "a", "a", "192.168.64.11"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(r, Order{
		Profile: ServingProfile(), Usages: []string{UsageDigitalSignature, UsageServerAuth}, Serial: big.NewInt(42),
		Issuer: ca, Duration: time.Hour, Now: lintNow,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, key
}

// TestLintSeesEveryDifference changes what is encoded, after what was asked for was fixed: as if the encoder were
// broken.
func TestLintSeesEveryDifference(t *testing.T) {
	other, err := Parse(pkitest.Kubelet(t, "b"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p *prepared, c *x509.Certificate){
		"serial number":     func(_ *prepared, c *x509.Certificate) { c.SerialNumber = big.NewInt(43) },
		"subject":           func(_ *prepared, c *x509.Certificate) { c.RawSubject, _ = other.subject.encode() },
		"a DNS name more":   func(_ *prepared, c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "b") },
		"no DNS name":       func(_ *prepared, c *x509.Certificate) { c.DNSNames = nil },
		"another address":   func(_ *prepared, c *x509.Certificate) { c.IPAddresses = []net.IP{{10, 0, 0, 1}} },
		"an e-mail address": func(_ *prepared, c *x509.Certificate) { c.EmailAddresses = []string{"a@b"} },
		"a key usage":       func(_ *prepared, c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCertSign },
		"no key usage":      func(_ *prepared, c *x509.Certificate) { c.KeyUsage = 0 },
		"an extended usage": func(_ *prepared, c *x509.Certificate) {
			c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
		},
		"no extended usage": func(_ *prepared, c *x509.Certificate) { c.ExtKeyUsage = nil },
		"an unknown usage": func(_ *prepared, c *x509.Certificate) {
			c.UnknownExtKeyUsage = append(c.UnknownExtKeyUsage, oidSubjectAltName)
		},
		"an authority":     func(_ *prepared, c *x509.Certificate) { c.IsCA = true },
		"no constraints":   func(_ *prepared, c *x509.Certificate) { c.BasicConstraintsValid = false },
		"an earlier start": func(_ *prepared, c *x509.Certificate) { c.NotBefore = c.NotBefore.Add(-time.Second) },
		"a later end":      func(_ *prepared, c *x509.Certificate) { c.NotAfter = c.NotAfter.Add(time.Second) },
		"another key":      func(p *prepared, _ *x509.Certificate) { p.publicKey = other.publicKey },
		"a policy": func(_ *prepared, c *x509.Certificate) {
			c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 32}, Value: []byte{0x30, 0}})
		},
		"an OCSP server":    func(_ *prepared, c *x509.Certificate) { c.OCSPServer = []string{"http://a"} },
		"a name constraint": func(_ *prepared, c *x509.Certificate) { c.PermittedDNSDomains = []string{"a"} },
		"a key identifier":  func(_ *prepared, c *x509.Certificate) { c.SubjectKeyId = []byte{1} },
		"another issuer":    func(p *prepared, _ *x509.Certificate) { i := *p.issuer; i.RawSubject = []byte{0x30, 0}; p.issuer = &i },
		"a registered ID": func(_ *prepared, c *x509.Certificate) {
			value := "\x82\x01a" + "\x87\x04\xc0\xa8\x40\x0b" + "\x88\x01\x2a" // a, 192.168.64.11 and 1.2
			c.ExtraExtensions = []pkix.Extension{{Id: oidSubjectAltName, Value: append([]byte{0x30, byte(len(value))}, value...)}}
		},
		"nothing, and so no": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := good(t)
			template := *p.template
			encoded := Prepared{&prepared{template: &template, publicKey: p.publicKey, issuer: p.issuer}}
			if change != nil {
				change(encoded.prepared, &template)
			}
			var err error
			if p.signed, err = encoded.rehearse(); err != nil {
				t.Fatal(err)
			}
			if err := p.lint(); (err == nil) != (change == nil) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The key signs what was linted, and nothing that somebody puts in its place.
func TestTheKeySignsOnlyWhatWasLinted(t *testing.T) {
	p, key := good(t)
	linted := bytes.Clone(p.signed.tbs)
	p.template.DNSNames = append(p.template.DNSNames, "b")
	p.subject.commonName = "b"
	data, err := p.Sign(rand.Reader, p.issuer, key)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if c, err := x509.ParseCertificate(block.Bytes); err != nil || !bytes.Equal(c.RawTBSCertificate, linted) || c.CheckSignatureFrom(p.issuer) != nil {
		t.Errorf("something else was signed: %v", err)
	}
	p, _ = good(t)
	p.algorithm = x509.SHA512WithRSA
	if _, err := p.Sign(rand.Reader, p.issuer, key); err == nil {
		t.Error("a signature that does not verify was used")
	}
	if _, err := (recorder{}).Sign(rand.Reader, nil, crypto.SHA256); err == nil {
		t.Error("recorded a digest")
	}
}

func TestLintRefusesALifeThatIsNone(t *testing.T) {
	for name, change := range map[string]func(c *x509.Certificate){
		"it ends before it starts": func(c *x509.Certificate) { c.NotAfter = c.NotBefore },
		"it outlives its issuer":   func(c *x509.Certificate) { c.NotAfter = c.NotAfter.Add(2000 * time.Hour) },
		"it is an authority":       func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCRLSign },
	} {
		p, _ := good(t)
		change(p.template) // asked for and encoded
		var err error
		if p.signed, err = p.rehearse(); err != nil {
			t.Fatal(err)
		}
		if p.lint() == nil {
			t.Error(name)
		}
	}
	p, _ := good(t)
	for _, tbs := range [][]byte{nil, {0x30, 0}, p.signed.tbs[:len(p.signed.tbs)-1], append(bytes.Clone(p.signed.tbs), 0)} {
		if p.signed.tbs = tbs; p.lint() == nil {
			t.Errorf("took % x for a certificate", tbs)
		}
	}
}

func TestLintRefusesNamesOnAClientCertificate(t *testing.T) {
	p, _ := good(t)
	p.profile = ClientProfile()
	if p.lint() == nil {
		t.Error("took a certificate with names for a client's")
	}
}
