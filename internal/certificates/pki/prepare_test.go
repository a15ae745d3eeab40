// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func request(t *testing.T, names ...string) pki.Request {
	t.Helper()
	r, err := pki.Parse(pkitest.Kubelet(t, node, names...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// order is a good order for a serving certificate, to be changed one field at a time.
func order(issuer *x509.Certificate) pki.Order {
	return pki.Order{
		Profile: pki.ServingProfile(), Usages: []string{pki.UsageDigitalSignature, pki.UsageServerAuth},
		Serial: big.NewInt(42), Issuer: issuer, Duration: 168 * time.Hour, Now: now,
	}
}

func TestPrepareAndSign(t *testing.T) {
	ca, key := pkitest.Authority(t, "kubernetes", now, 10*365*24*time.Hour)
	p, err := pki.Prepare(request(t, node, "192.168.64.11"), order(ca))
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Sign(rand.Reader, ca, key)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 || len(block.Headers) > 0 {
		t.Fatalf("not one certificate: %s", data)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, name := range []string{node, "192.168.64.11"} {
		if _, err := c.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	if _, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("a serving certificate can be used as a client's")
	}
	if got := c.NotAfter.Sub(now); got != 168*time.Hour-5*time.Minute {
		t.Errorf("good for %s", got)
	}
	if c.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("key usage %b", c.KeyUsage)
	}
}

func TestSignOnlyOnce(t *testing.T) {
	ca, key := pkitest.Authority(t, "kubernetes", now, time.Hour)
	p, err := pki.Prepare(request(t, node), order(ca))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sign(rand.Reader, ca, key); err != nil {
		t.Fatal(err)
	}
	q := p
	if _, err := q.Sign(rand.Reader, ca, key); !errors.Is(err, pki.ErrUsed) {
		t.Errorf("a copy signed again: %v", err)
	}
}

func TestSignOnlyForTheIssuerThatWasLinted(t *testing.T) {
	ca, key := pkitest.Authority(t, "kubernetes", now, time.Hour)
	other, otherKey := pkitest.Authority(t, "kubernetes", now, 1000*time.Hour)
	p, err := pki.Prepare(request(t, node), order(ca))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sign(rand.Reader, other, otherKey); !errors.Is(err, pki.ErrIssuerChanged) {
		t.Fatalf("got %v", err)
	}
	if _, err := p.Sign(rand.Reader, ca, otherKey); err == nil {
		t.Error("signed with a key that is not the issuer's")
	}
	if _, err := p.Sign(rand.Reader, ca, key); !errors.Is(err, pki.ErrUsed) {
		t.Errorf("a failed signature is one use too: %v", err)
	}
	if _, err := (pki.Prepared{}).Sign(rand.Reader, ca, key); err == nil {
		t.Error("signed nothing")
	}
}

func TestPrepareRefuses(t *testing.T) {
	ca, _ := pkitest.Authority(t, "kubernetes", now, time.Hour)
	leaf := *ca
	leaf.IsCA = false
	foreign := pki.ClientProfile()
	foreign.SignerName = "example.com/other"
	mixed := pki.ClientProfile()
	mixed.SignerName = pki.SignerKubeletServing
	for _, tc := range []struct {
		name   string
		change func(*pki.Order)
		want   string
	}{
		{"nothing wrong", func(*pki.Order) {}, ""},
		{"no issuer", func(o *pki.Order) { o.Issuer = nil }, "certificate authority"},
		{"an issuer that is no authority", func(o *pki.Order) { o.Issuer = &leaf }, "certificate authority"},
		{"no serial number", func(o *pki.Order) { o.Serial = nil }, "serial"},
		{"serial number zero", func(o *pki.Order) { o.Serial = big.NewInt(0) }, "serial"},
		{"a serial number of 129 bits", func(o *pki.Order) { o.Serial = new(big.Int).Lsh(big.NewInt(1), 128) }, "serial"},
		{"a usage too few", func(o *pki.Order) { o.Usages = o.Usages[:1] }, "usages"},
		{"client auth as a third usage", func(o *pki.Order) { o.Usages = append(o.Usages, pki.UsageClientAuth) }, "usages"},
		{"a client certificate with names", func(o *pki.Order) {
			o.Profile, o.Usages = pki.ClientProfile(), []string{pki.UsageClientAuth, pki.UsageDigitalSignature}
		}, "with 1 names"},
		{"a profile from elsewhere", func(o *pki.Order) { o.Profile = foreign }, "profile"},
		{"a profile of parts", func(o *pki.Order) { o.Profile = mixed }, "profile"},
		{"an issuer that is not valid yet", func(o *pki.Order) { o.Now = ca.NotBefore.Add(-time.Second) }, "is the clock right"},
		{"an issuer that is valid from now on", func(o *pki.Order) { o.Now = ca.NotBefore }, ""},
		{"an expired issuer", func(o *pki.Order) { o.Now = now.Add(2 * time.Hour) }, "expired"},
		{"no duration", func(o *pki.Order) { o.Duration = 0 }, "duration"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ord := order(ca)
			tc.change(&ord)
			_, err := pki.Prepare(request(t, node), ord)
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := pki.Prepare(pki.Request{}, order(ca)); err == nil {
		t.Error("prepared an empty request")
	}
	if _, err := pki.Prepare(request(t), order(ca)); err == nil {
		t.Error("prepared a serving certificate without names")
	}
	for name, subject := range map[string]pkix.RDNSequence{
		"another organization": rdns(cn("system:node:a"), o("system:masters")),
		"one more":             rdns(cn("system:node:a"), o("system:nodes"), o("system:masters")),
		"a unit":               rdns(cn("system:node:a"), o("system:nodes"), attr("ops", 2, 5, 4, 11)),
	} {
		r, err := pki.Parse(pkitest.Raw(t, subject))
		if err != nil {
			t.Fatal(err)
		}
		ord := order(ca)
		ord.Profile, ord.Usages = pki.ClientProfile(), []string{pki.UsageClientAuth, pki.UsageDigitalSignature}
		if _, err := pki.Prepare(r, ord); err == nil || !strings.Contains(err.Error(), "system:nodes") {
			t.Errorf("%s in a node's certificate: %v", name, err)
		}
	}
}

func TestKeyEnciphermentIsForRSAOnly(t *testing.T) {
	ca, key := pkitest.Authority(t, "kubernetes", now, time.Hour)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		csr  []byte
		want x509.KeyUsage
	}{
		{"RSA", pkitest.Encode(t, rsaKey, pkitest.Template(node, node)), x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment},
		{"ECDSA", pkitest.Kubelet(t, node, node), x509.KeyUsageDigitalSignature},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := pki.Parse(tc.csr)
			if err != nil {
				t.Fatal(err)
			}
			ord := order(ca)
			ord.Usages = append(ord.Usages, pki.UsageKeyEncipherment)
			p, err := pki.Prepare(r, ord)
			if err != nil {
				t.Fatal(err)
			}
			data, err := p.Sign(rand.Reader, ca, key)
			if err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(data)
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if c.KeyUsage != tc.want {
				t.Errorf("got %b, want %b", c.KeyUsage, tc.want)
			}
		})
	}
}

func TestNewSerial(t *testing.T) {
	ca, _ := pkitest.Authority(t, "kubernetes", now, time.Hour)
	a, err := pki.NewSerial(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if a.Sign() <= 0 || a.BitLen() > 128 {
		t.Errorf("%d bits", a.BitLen())
	}
	for _, drawn := range []string{"ffffffffffffffffffffffffffffffff", "80000000000000000000000000000000", "7fffffffffffffffffffffffffffffff", "00000000000000000000000000000001"} {
		raw, err := hex.DecodeString(drawn)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pki.NewSerial(bytes.NewReader(raw))
		if err != nil || fmt.Sprintf("%032x", got) != drawn || got.Sign() <= 0 {
			t.Errorf("of the bits %s it made %x, %v", drawn, got, err)
		}
		o := order(ca)
		o.Serial = got
		if _, err := pki.Prepare(request(t, node), o); err != nil {
			t.Errorf("%s: %v", drawn, err)
		}
	}
	if _, err := pki.NewSerial(bytes.NewReader(make([]byte, 16))); err == nil {
		t.Error("made the serial number zero")
	}
	if _, err := pki.NewSerial(strings.NewReader("short")); err == nil {
		t.Error("made a serial number from too little")
	}
}

func TestValidity(t *testing.T) {
	const week = 168 * time.Hour
	seconds := func(d time.Duration) *int32 { s := int32(d / time.Second); return &s }
	for _, tc := range []struct {
		name  string
		ttl   time.Duration
		asked *int32
		ca    time.Duration
		want  time.Duration // from now to the end; 0: refused
	}{
		{"nothing asked: the signer's own, less the backdating", week, nil, 2 * week, week - 5*time.Minute},
		{"less asked", week, seconds(24 * time.Hour), 2 * week, 24*time.Hour - 5*time.Minute},
		{"more asked", week, seconds(2 * week), 4 * week, week - 5*time.Minute},
		{"under eight hours nothing is taken off", week, seconds(time.Hour), 2 * week, time.Hour},
		{"eight hours are long", week, seconds(8 * time.Hour), 2 * week, 8*time.Hour - 5*time.Minute},
		{"less than ten minutes asked", week, seconds(time.Second), 2 * week, 10 * time.Minute},
		{"never past the authority", week, nil, time.Hour, time.Hour},
		{"the authority expired", week, nil, -time.Second, 0},
		{"the authority expires now", week, nil, 0, 0},
		{"a signer without a duration", 0, nil, week, 0},
		{"negative seconds", week, seconds(-time.Hour), 2 * week, 10 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from, to, err := pki.Validity(now, tc.ttl, tc.asked, now.Add(tc.ca))
			if (err != nil) != (tc.want == 0) {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				return
			}
			if got := to.Sub(now); got != tc.want {
				t.Errorf("ends after %s, want %s", got, tc.want)
			}
			if got := now.Sub(from); got != 5*time.Minute {
				t.Errorf("starts %s ago", got)
			}
		})
	}
}
