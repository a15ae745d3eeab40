// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// BenchmarkRequest is the whole way of one serving certificate on ECDSA P-256, and of its parts.
func BenchmarkRequest(b *testing.B) {
	w := serving(b, nodeA, addrA)
	ca, key := pkitest.Authority(b, "kubernetes", now, 10*365*24*time.Hour)
	read := func() policy.Request { return policy.Read(&w.object, w.policy) }
	decide := func(r policy.Request) {
		if d := policy.Decide(w.policy, r, w.facts, now); d.Verdict != decision.Approve {
			b.Fatal(d)
		}
	}
	prepare := func(r policy.Request) pki.Prepared {
		serial, err := pki.NewSerial(rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		p, err := pki.Prepare(r.CSR, pki.Order{
			Profile: pki.ServingProfile(), Usages: r.Usages, Serial: serial, Issuer: ca, Duration: 168 * time.Hour, Now: now,
		})
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	sign := func(p pki.Prepared) {
		if _, err := p.Sign(rand.Reader, ca, key); err != nil {
			b.Fatal(err)
		}
	}
	r := read()
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			r := read()
			decide(r)
			sign(prepare(r))
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			read()
		}
	})
	b.Run("decide", func(b *testing.B) {
		for b.Loop() {
			decide(r)
		}
	})
	b.Run("prepare", func(b *testing.B) {
		for b.Loop() {
			prepare(r)
		}
	})
	b.Run("prepare_and_sign", func(b *testing.B) {
		for b.Loop() {
			sign(prepare(r))
		}
	})
	b.Run("floor", func(b *testing.B) { benchmarkFloor(b, w.object.Spec.Request, ca, key) })
	b.Run("verify", func(b *testing.B) {
		digest := sha256.Sum256(nil)
		signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature)
		}
	})
}

// benchmarkFloor does what no signer can leave out: read the request, verify that the key belongs to the requester, and
// sign.
func benchmarkFloor(b *testing.B, data []byte, ca *x509.Certificate, key *ecdsa.PrivateKey) {
	b.Helper()
	for b.Loop() {
		block, _ := pem.Decode(data)
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			b.Fatal(err)
		}
		if err := csr.CheckSignature(); err != nil {
			b.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: csr.Subject, NotBefore: now, NotAfter: now.Add(time.Hour),
			DNSNames: csr.DNSNames, IPAddresses: csr.IPAddresses, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		}
		if _, err := x509.CreateCertificate(rand.Reader, template, ca, csr.PublicKey, key); err != nil {
			b.Fatal(err)
		}
	}
}
