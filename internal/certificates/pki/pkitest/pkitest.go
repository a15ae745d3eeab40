// SPDX-License-Identifier: Apache-2.0

// Package pkitest makes certificate signing requests for tests, also those that no honest program would make.
package pkitest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Key makes an ECDSA P-256 key, as kubelets do.
func Key(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Kubelet makes the request of a well-behaved kubelet: pass names for a serving certificate, none for a client
// certificate.
func Kubelet(t testing.TB, node string, names ...string) []byte {
	t.Helper()
	return Encode(t, Key(t), Template(node, names...))
}

// Template is the request of a kubelet, to be changed and encoded. Names that are addresses become IP names.
func Template(node string, names ...string) *x509.CertificateRequest {
	r := &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			r.IPAddresses = append(r.IPAddresses, ip)
		} else {
			r.DNSNames = append(r.DNSNames, n)
		}
	}
	return r
}

// Encode signs a template and returns it in PEM.
func Encode(t testing.TB, key crypto.Signer, template *x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return PEM(der)
}

// PEM encodes a request.
func PEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// GeneralName is an entry of a subject alternative name extension.
type GeneralName struct {
	Tag   int
	Value []byte
}

// SAN makes the extension from raw entries.
func SAN(t testing.TB, names ...GeneralName) pkix.Extension {
	t.Helper()
	raw := []asn1.RawValue{}
	for _, n := range names {
		raw = append(raw, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: n.Tag, Bytes: n.Value})
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: Marshal(t, raw)}
}

// Raw signs a request made of raw parts: a subject and a list of attributes.
func Raw(t testing.TB, subject pkix.RDNSequence, attributes ...any) []byte {
	t.Helper()
	key := Key(t)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	var attrs []byte
	for _, a := range attributes {
		attrs = append(attrs, Marshal(t, a)...)
	}
	tbs := Marshal(t, struct {
		Version                        int
		Subject, PublicKey, Attributes asn1.RawValue
	}{
		Subject:    asn1.RawValue{FullBytes: Marshal(t, subject)},
		PublicKey:  asn1.RawValue{FullBytes: public},
		Attributes: asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: attrs},
	})
	digest := sha256.Sum256(tbs)
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return PEM(Marshal(t, struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		asn1.RawValue{FullBytes: tbs},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}},
		asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)},
	}))
}

// Marshal is asn1.Marshal.
func Marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := asn1.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Authority makes a certificate authority that is good from an hour before now for the given time.
func Authority(t testing.TB, name string, now time.Time, life time.Duration) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key := Key(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}
