// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"testing"

	"muster.dev/muster/internal/certificates/pki/pkitest"
)

func TestParseKeys(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0") // a key that is too small must be made first
	curve := func(c elliptic.Curve) *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(c, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	bits := func(n int) *rsa.PrivateKey {
		k, err := rsa.GenerateKey(rand.Reader, n)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := pkitest.Template(node)
	parseMust(t, pkitest.Encode(t, curve(elliptic.P256()), template), "")
	parseMust(t, pkitest.Encode(t, curve(elliptic.P384()), template), "")
	parseMust(t, pkitest.Encode(t, curve(elliptic.P521()), template), "")
	parseMust(t, pkitest.Encode(t, curve(elliptic.P224()), template), "P-224")
	parseMust(t, pkitest.Encode(t, bits(2048), template), "")
	parseMust(t, pkitest.Encode(t, bits(1024), template), "1024 bits")
	parseMust(t, pkitest.Encode(t, ed, template), "")
	for name, tc := range map[string]struct {
		bits, exponent int
		want           string
	}{
		"the largest": {8192, 65537, "signature"}, "too large": {8193, 65537, "8193 bits"}, "far too large": {16384, 65537, "16384 bits"},
		"no exponent to speak of": {2048, 1, "exponent 1"}, "a small exponent": {2048, 3, "exponent 3"}, "an even exponent": {2048, 65538, "exponent 65538"}, "a huge exponent": {2048, 1<<31 - 1, "signature"},
	} {
		t.Run(name, func(t *testing.T) {
			n := withoutSmallFactors(tc.bits)
			nobody := func([]byte) []byte { return make([]byte, tc.bits/8) }
			parseMust(t, withRSA(t, &rsa.PublicKey{N: n, E: tc.exponent}, 11, nobody), tc.want)
		})
	}
	old := bits(2048)
	parseMust(t, withRSA(t, &old.PublicKey, 5, func(tbs []byte) []byte {
		digest := sha1.Sum(tbs)
		signature, err := rsa.SignPKCS1v15(rand.Reader, old, crypto.SHA1, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}), "SHA1-RSA")
	weak := pkitest.Template(node)
	weak.SignatureAlgorithm = x509.SHA384WithRSAPSS
	parseMust(t, pkitest.Encode(t, bits(2048), weak), "")
}

// A key has one fingerprint, or it could be certified for two nodes. crypto/x509 reads each of these as the same key.
func TestParseKeysInOneEncoding(t *testing.T) {
	ec := pkitest.Key(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	shifted := func(bits int) func([]byte) asn1.BitString { // the bits that are zero in front go behind, unused
		return func(key []byte) asn1.BitString {
			n := new(big.Int).Lsh(new(big.Int).SetBytes(key), uint(bits))
			return asn1.BitString{Bytes: n.FillBytes(make([]byte, len(key))), BitLength: 8*len(key) - bits}
		}
	}
	point := func(form byte) func([]byte) asn1.BitString { // SEC 1, 2.3.3
		return func(key []byte) asn1.BitString {
			key = bytes.Clone(key)
			switch form {
			case 0:
				key = []byte{0}
			case 2:
				key = append([]byte{2 + key[len(key)-1]&1}, key[1:1+len(key)/2]...)
			default:
				key[len(key)-1] ^= 1
			}
			return asn1.BitString{Bytes: key, BitLength: 8 * len(key)}
		}
	}
	behind := func(key []byte) asn1.BitString {
		longer := append(bytes.Clone(key), 0)
		return asn1.BitString{Bytes: longer, BitLength: 8 * len(longer)}
	}
	within := func(key []byte) asn1.BitString {
		var parts struct{ N, E *big.Int }
		if _, err := asn1.Unmarshal(key, &parts); err != nil {
			t.Fatal(err)
		}
		longer := pkitest.Marshal(t, struct {
			N, E *big.Int
			More int
		}{parts.N, parts.E, 1})
		return asn1.BitString{Bytes: longer, BitLength: 8 * len(longer)}
	}
	for name, tc := range map[string]struct {
		key  crypto.Signer
		bits func([]byte) asn1.BitString
		want string
	}{
		"ECDSA":                              {ec, shifted(0), ""},
		"ECDSA, compressed":                  {ec, point(2), "reading the request"},
		"ECDSA, on no curve":                 {ec, point(4), "reading the request"},
		"ECDSA, at infinity":                 {ec, point(0), "reading the request"},
		"ECDSA, an unused bit":               {ec, shifted(1), "encoded in another way"},
		"ECDSA, five unused bits":            {ec, shifted(5), "encoded in another way"},
		"RSA":                                {rsaKey, shifted(0), ""},
		"RSA, two unused bits":               {rsaKey, shifted(2), "encoded in another way"},
		"RSA, something behind the key":      {rsaKey, behind, "encoded in another way"},
		"RSA, something behind the exponent": {rsaKey, within, "encoded in another way"},
	} {
		t.Run(name, func(t *testing.T) { parseMust(t, withKey(t, tc.key, tc.bits), tc.want) })
	}
}

// withKey is a request of a key whose bits are written by the test.
func withKey(t *testing.T, key crypto.Signer, write func([]byte) asn1.BitString) []byte {
	t.Helper()
	type request struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	type info struct {
		Version   int
		Subject   asn1.RawValue
		PublicKey struct {
			Algorithm pkix.AlgorithmIdentifier
			Key       asn1.BitString
		}
		Attributes []asn1.RawValue `asn1:"tag:0,set"`
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, pkitest.Template(node), key)
	if err != nil {
		t.Fatal(err)
	}
	var r request
	var i info
	if _, err := asn1.Unmarshal(der, &r); err != nil {
		t.Fatal(err)
	}
	if _, err := asn1.Unmarshal(r.TBS.FullBytes, &i); err != nil {
		t.Fatal(err)
	}
	i.PublicKey.Key = write(i.PublicKey.Key.Bytes)
	r.TBS.FullBytes = pkitest.Marshal(t, i)
	digest := sha256.Sum256(r.TBS.FullBytes)
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	r.Signature = asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}
	return pkitest.PEM(pkitest.Marshal(t, r))
}

// withRSA is the request of a key that crypto/rsa would not make, signed with an algorithm of PKCS #1 in a way of the
// test's own.
func withRSA(t *testing.T, key *rsa.PublicKey, algorithm int, sign func(tbs []byte) []byte) []byte {
	t.Helper()
	pkcs1 := func(n int) pkix.AlgorithmIdentifier {
		return pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, n}, Parameters: asn1.NullRawValue}
	}
	bits := func(b []byte) asn1.BitString { return asn1.BitString{Bytes: b, BitLength: 8 * len(b)} }
	subject := pkitest.Template(node).Subject.ToRDNSequence()
	tbs := pkitest.Marshal(t, struct {
		Version    int
		Subject    pkix.RDNSequence
		PublicKey  any
		Attributes asn1.RawValue
	}{
		Subject: subject,
		PublicKey: struct {
			Algorithm pkix.AlgorithmIdentifier
			Key       asn1.BitString
		}{pkcs1(1), bits(pkitest.Marshal(t, *key))},
		Attributes: asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true},
	})
	return pkitest.PEM(pkitest.Marshal(t, struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: tbs}, pkcs1(algorithm), bits(sign(tbs))}))
}
