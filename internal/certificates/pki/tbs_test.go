// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// device is a key that signs digests, as a security module does, and counts. broken ones sign something else.
type device struct {
	*ecdsa.PrivateKey
	broken bool
	used   int
}

func (d *device) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	d.used++
	if d.broken {
		other := sha256.Sum256(digest)
		digest = other[:]
	}
	return d.PrivateKey.Sign(random, digest, opts)
}

func TestSignWithADevice(t *testing.T) {
	ca, key := pkitest.Authority(t, "kubernetes", now, time.Hour)
	for _, broken := range []bool{false, true} {
		d := &device{PrivateKey: key, broken: broken}
		p, err := pki.Prepare(request(t, node), order(ca))
		if err != nil {
			t.Fatal(err)
		}
		if d.used != 0 {
			t.Fatal("the key was used before there was anything to sign")
		}
		if _, err = p.Sign(rand.Reader, ca, d); (err != nil) != broken || d.used != 1 {
			t.Errorf("broken %v: %v after %d signatures", broken, err, d.used)
		}
	}
}

// A certificate that cannot be built for an issuer shows before its key is touched, for every kind of issuer.
func TestPrepareForEveryKindOfIssuer(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"ECDSA": pkitest.Key(t), "RSA": rsaKey, "Ed25519": edKey} {
		t.Run(name, func(t *testing.T) {
			template := &x509.Certificate{
				SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
				IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
			}
			der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
			if err != nil {
				t.Fatal(err)
			}
			ca, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			p, err := pki.Prepare(request(t, node), order(ca))
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
			if err := c.CheckSignatureFrom(ca); err != nil {
				t.Error(err)
			}
		})
	}
	ca, _ := pkitest.Authority(t, "kubernetes", now, time.Hour)
	odd := *ca
	odd.PublicKey = "a key of a kind that does not exist"
	if _, err := pki.Prepare(request(t, node), order(&odd)); err == nil {
		t.Error("prepared for an issuer that cannot sign")
	}
}

// FuzzPrepare holds that what Parse reads, what Prepare lints and what a reader of the certificate sees are one: it
// tries whatever is accepted with every profile.
func FuzzPrepare(f *testing.F) {
	seed := func(data []byte) {
		block, _ := pem.Decode(data)
		f.Add(block.Bytes)
	}
	seed(pkitest.Kubelet(f, node))
	seed(pkitest.Kubelet(f, node, node, "192.168.64.11"))
	seed(pkitest.Raw(f, rdns(attr("NZ", 2, 5, 4, 6), o("newlands"), attr("Test", 2, 5, 4, 11), o("b"), cn("vip"))))
	ca, key := pkitest.Authority(f, "kubernetes", now, time.Hour)
	f.Fuzz(func(t *testing.T, der []byte) {
		r, err := pki.Parse(pkitest.PEM(der))
		if err != nil {
			// Bytes that changed carry no valid signature: sign them anew, so that the fuzzer gets past it.
			if r, err = pki.Parse(resign(der)); err != nil {
				return
			}
		}
		for _, profile := range profiles(t) {
			ord := order(ca)
			ord.Profile, ord.Usages = profile, profile.Usages
			if len(ord.Usages) == 0 {
				ord.Usages = profile.MayUse[:1]
			}
			p, err := pki.Prepare(r, ord)
			if err != nil {
				if profile.AllowsNames(len(r.DNSNames())+len(r.Addresses())) && !profile.Node {
					t.Errorf("%s: was read, but cannot be prepared: %v", profile.Name, err)
				}
				continue
			}
			data, err := p.Sign(rand.Reader, ca, key)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, r, data)
		}
	})
}

// compare reads a certificate with crypto/x509 and compares it with the request.
func compare(t *testing.T, r pki.Request, data []byte) {
	t.Helper()
	block, _ := pem.Decode(data)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	same := c.Subject.CommonName == r.CommonName() && len(c.Subject.Organization) == len(r.Organization()) &&
		len(c.DNSNames) == len(r.DNSNames()) && len(c.IPAddresses) == len(r.Addresses()) && len(c.URIs)+len(c.EmailAddresses) == 0
	for i := range c.Subject.Organization {
		same = same && c.Subject.Organization[i] == r.Organization()[i]
	}
	for i := range c.DNSNames {
		same = same && c.DNSNames[i] == r.DNSNames()[i]
	}
	for i := range c.IPAddresses {
		same = same && c.IPAddresses[i].Equal(r.Addresses()[i].AsSlice())
	}
	if !same || c.IsCA || sha256.Sum256(c.RawSubjectPublicKeyInfo) != r.Fingerprint() {
		t.Errorf("the certificate says %v %v %v, the request %s %v %v %v", c.Subject, c.DNSNames, c.IPAddresses, r.CommonName(), r.Organization(), r.DNSNames(), r.Addresses())
	}
}

// resign replaces the key and the signature of a request, as far as its outer shape can be read.
func resign(der []byte) []byte {
	var outer struct{ Info, Algorithm, Signature asn1.RawValue }
	var info struct {
		Version            int
		Subject, PublicKey asn1.RawValue
		Attributes         asn1.RawValue `asn1:"optional"`
	}
	if _, err := asn1.Unmarshal(der, &outer); err != nil {
		return nil
	}
	if _, err := asn1.Unmarshal(outer.Info.FullBytes, &info); err != nil {
		return nil
	}
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), append(make([]byte, 31), 7))
	if err != nil {
		return nil
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	info.PublicKey = asn1.RawValue{FullBytes: public}
	tbs, err2 := asn1.Marshal(info)
	digest := sha256.Sum256(tbs)
	signature, err3 := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	out, err4 := asn1.Marshal(struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: tbs}, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}}, asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}})
	if errors.Join(err, err2, err3, err4) != nil {
		return nil
	}
	return pkitest.PEM(out)
}
