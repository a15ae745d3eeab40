// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"muster.dev/muster/internal/certificates/pki"
)

func requestOf(node string, dnsNames ...string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		DNSNames: dnsNames,
	}, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

func authorityOf(name string, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now, NotAfter: now.AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return certificate, key, err
}

// A request is read strictly, and names are as they stand in it.
func ExampleParse() {
	text, err := requestOf("worker-1", "worker-1", "worker-1.example")
	if err != nil {
		fmt.Println(err)
		return
	}
	request, err := pki.Parse(text)
	fmt.Println(request.CommonName(), request.Organization(), request.DNSNames(), err)
	// Output: system:node:worker-1 [system:nodes] [worker-1 worker-1.example] <nil>
}

// A certificate is checked and linted before the key is used. It signs once.
func ExamplePrepare() {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	issuer, key, err := authorityOf("kubelet-ca", now.AddDate(-1, 0, 0))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := requestOf("worker-1", "worker-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	request, err := pki.Parse(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	serial, err := pki.NewSerial(rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	order := pki.Order{
		Profile: pki.ServingProfile(), Usages: []string{"digital signature", "server auth"},
		Serial: serial, Issuer: issuer, Duration: 24 * time.Hour, Now: now,
	}
	prepared, err := pki.Prepare(request, order)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = prepared.Sign(rand.Reader, issuer, key)
	fmt.Println("signed:", err == nil)
	_, err = prepared.Sign(rand.Reader, issuer, key)
	fmt.Println("again:", err)

	order.Usages = []string{"client auth"}
	_, err = pki.Prepare(request, order)
	fmt.Println("client auth:", err)
	// Output:
	// signed: true
	// again: this prepared certificate was signed already
	// client auth: the usages ["client auth"] are not those of a serving certificate
}
