// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
)

func TestVerifies(t *testing.T) {
	s := newStore(t)
	s.ensure(start, credentials(), everything()...)
	client, server := x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
	for _, test := range []struct {
		credential, authority, host string
		usage                       x509.ExtKeyUsage
		ok                          bool
	}{
		{"server", authority.Cluster, "localhost", server, true},
		{"server", authority.Cluster, "api", server, true},
		{"server", authority.Cluster, "127.0.0.1", server, true},
		{"server", authority.Cluster, "fd00::1", server, true},
		{"server", authority.Cluster, "example.com", server, false},
		{"server", authority.Cluster, "", client, false},
		{"server", authority.FrontProxy, "localhost", server, false},
		{"client", authority.Cluster, "", client, true},
		{"client", authority.Cluster, "", server, false},
		{"client", authority.Etcd, "", client, false},
		{"client", authority.FrontProxy, "", client, false},
		{"both", authority.Etcd, "localhost", server, true},
		{"both", authority.Etcd, "", client, true},
	} {
		_, err := s.pair(test.credential).Leaf.Verify(x509.VerifyOptions{
			Roots: s.pool(test.authority), DNSName: test.host, CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{test.usage},
		})
		if (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
	}
	leaf := s.pair("client").Leaf
	if got := leaf.Subject.String(); got != "CN=alice,O=readers+O=writers" {
		t.Errorf("subject is %s", got)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: s.pool(authority.Cluster), CurrentTime: start.Add(-4 * time.Minute), KeyUsages: []x509.ExtKeyUsage{client}}); err != nil {
		t.Errorf("a clock four minutes behind: %v", err)
	}
}

// An authority serves nobody, and a certificate that it issued cannot issue another.
func TestAuthoritiesAndLeavesDifferInKind(t *testing.T) {
	s := newStore(t)
	s.ensure(start, credentials(), everything()...)
	for _, name := range s.Names() {
		pair, err := tls.LoadX509KeyPair(s.AuthorityPath(name), filepath.Join(s.dir, name, "ca-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		ca := pair.Leaf
		if !ca.IsCA || !ca.MaxPathLenZero || ca.MaxPathLen != 0 || len(ca.DNSNames)+len(ca.IPAddresses)+len(ca.Subject.Organization) > 0 || ca.KeyUsage&x509.KeyUsageCertSign == 0 {
			t.Errorf("authority %s: %+v", name, ca)
		}
		for _, host := range []string{"localhost", "127.0.0.1", "muster " + name} {
			if err := ca.VerifyHostname(host); err == nil {
				t.Errorf("authority %s serves as %s", name, host)
			}
		}
	}
	both := s.pair("both")
	if both.Leaf.IsCA || both.Leaf.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("leaf: %+v", both.Leaf)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "forged"}, NotBefore: start, NotAfter: start.Add(day)}
	der, err := x509.CreateCertificate(rand.Reader, template, both.Leaf, key.Public(), both.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	between := x509.NewCertPool()
	between.AddCert(both.Leaf)
	_, err = forged.Verify(x509.VerifyOptions{Roots: s.pool(s.Names()...), Intermediates: between, CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err == nil {
		t.Error("a certificate that a leaf signed is good")
	}
}

func TestSerialNumbers(t *testing.T) {
	s := newStore(t)
	seen := map[string]bool{}
	longest := 0
	for i := range 20 {
		now := start.Add(time.Duration(i) * 80 * day)
		if _, err := s.Ensure(credentials(), now); err != nil {
			t.Fatal(err)
		}
		for _, c := range credentials() {
			serial := s.pair(c.Name).Leaf.SerialNumber
			if serial.Sign() <= 0 || serial.BitLen() > 128 || seen[serial.String()] {
				t.Errorf("serial number %s", serial)
			}
			seen[serial.String()] = true
			longest = max(longest, serial.BitLen())
		}
	}
	if longest < 110 {
		t.Errorf("the longest of %d serial numbers has %d bits", len(seen), longest)
	}
}
