// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"math/big"
	"testing"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// Requests whose keys are made badly, in the ways that have happened, and whose own signatures are right.
func TestParseWeakKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		p, q *big.Int
		want string
	}{
		"good":                         {prime(t, 1024), prime(t, 1024), ""},
		"close primes, CVE-2022-26320": {nextPrime(t, 1024, 0), nextPrime(t, 1024, 1), "close to each other"},
		"one prime twice":              {nextPrime(t, 1024, 0), nextPrime(t, 1024, 0), "close to each other"},
		"a small prime":                {big.NewInt(751), prime(t, 2038), "a prime factor of at most 751"},
		"ROCA, CVE-2017-15361":         {rsaLibPrime(t), rsaLibPrime(t), "CVE-2017-15361"},
		"one prime of ROCA":            {rsaLibPrime(t), prime(t, 1024), ""}, // which nobody makes, and which the fingerprint does not find
		"an odd size":                  {prime(t, 1024), prime(t, 1025), "2049 bits, which is not a multiple of 8"},
	} {
		t.Run(name, func(t *testing.T) {
			data := signedBy(t, tc.p, tc.q)
			parseMust(t, data, tc.want)
			if tc.want == "" {
				if r, err := pki.Parse(data); err == nil && r.Key() != (pki.Key{Algorithm: pki.RSA, Bits: 2048}) {
					t.Errorf("the key is %s", r.Key())
				}
			}
		})
	}
}

// A private key of one, or of any other number that one comes upon by counting.
func TestParseSmallScalars(t *testing.T) {
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		private := func(scalar *big.Int) *ecdsa.PrivateKey {
			k, err := ecdsa.ParseRawPrivateKey(curve, scalar.FillBytes(make([]byte, (curve.Params().BitSize+7)/8)))
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		last := new(big.Int).Sub(curve.Params().N, big.NewInt(1)) // minus one
		for _, scalar := range []*big.Int{big.NewInt(1), big.NewInt(255), last} {
			parseMust(t, pkitest.Encode(t, private(scalar), pkitest.Template(node)), "which anybody guesses")
		}
		parseMust(t, pkitest.Encode(t, private(big.NewInt(256)), pkitest.Template(node)), "")
	}
}

// The keys of an honest generator pass, however many there are.
func TestParseHonestKeys(t *testing.T) {
	for range 20 {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		parseMust(t, pkitest.Encode(t, key, pkitest.Template(node)), "")
	}
}

func BenchmarkParseRSA(b *testing.B) {
	for _, bits := range []int{2048, 4096} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			b.Fatal(err)
		}
		data := pkitest.Encode(b, key, pkitest.Template(node))
		b.Run(key.N.String()[:4], func(b *testing.B) {
			for b.Loop() {
				if _, err := pki.Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// signedBy is the request of the key with these factors, which crypto/rsa would not use.
func signedBy(t *testing.T, p, q *big.Int) []byte {
	t.Helper()
	one := big.NewInt(1)
	order := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	if p.Cmp(q) == 0 {
		order = new(big.Int).Mul(p, new(big.Int).Sub(q, one))
	}
	key := &rsa.PublicKey{N: new(big.Int).Mul(p, q), E: 65537}
	d := new(big.Int).ModInverse(big.NewInt(65537), order)
	if d == nil {
		t.Fatal("65537 divides p-1, as with one key in 32,000: run the test again")
	}
	return withRSA(t, key, 11, func(tbs []byte) []byte {
		digest := sha256.Sum256(tbs)
		// PKCS #1 v1.5: 0, 1, bytes of 255, 0, then the digest with its algorithm (RFC 8017, 9.2).
		tail := append([]byte{
			0, 0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20,
		}, digest[:]...)
		padded := append([]byte{0, 1}, bytes.Repeat([]byte{255}, key.Size()-2-len(tail))...)
		message := new(big.Int).SetBytes(append(padded, tail...))
		signature := message.Exp(message, d, key.N).FillBytes(make([]byte, key.Size()))
		if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature); err != nil {
			t.Fatalf("the test signs wrongly: %v", err)
		}
		return signature
	})
}

// prime is random, with the two highest bits set so that products have full length.
func prime(t *testing.T, bits int) *big.Int {
	t.Helper()
	p, err := rand.Prime(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// nextPrime is the nth prime after a number of so many bits that is always the same.
func nextPrime(t *testing.T, bits, nth int) *big.Int {
	t.Helper()
	p := new(big.Int).SetBit(big.NewInt(0x1_0001), bits-1, 1)
	p.SetBit(p, bits-2, 1)
	for two := big.NewInt(2); ; p.Add(p, two) {
		if !p.ProbablyPrime(20) {
			continue
		}
		if nth == 0 {
			return p
		}
		nth--
	}
}

// rsaLibPrime makes a prime of 1024 bits as Infineon's RSALib did: k·M + (65537^a mod M), where M is the product of the
// first 126 primes.
func rsaLibPrime(t *testing.T) *big.Int {
	t.Helper()
	m := big.NewInt(1)
	for n, primes := int64(2), 0; primes < 126; n++ {
		if big.NewInt(n).ProbablyPrime(20) {
			m.Mul(m, big.NewInt(n))
			primes++
		}
	}
	lowest := new(big.Int).Div(new(big.Int).Lsh(big.NewInt(3), 1022), m)
	for range 100_000 {
		k, err := rand.Int(rand.Reader, big.NewInt(1<<50))
		if err != nil {
			t.Fatal(err)
		}
		a, err := rand.Int(rand.Reader, m)
		if err != nil {
			t.Fatal(err)
		}
		p := new(big.Int).Exp(big.NewInt(65537), a, m)
		p.Add(p, k.Add(k, lowest).Mul(k, m))
		if p.BitLen() == 1024 && p.ProbablyPrime(20) {
			return p
		}
	}
	t.Fatal("no prime of this form was found")
	return nil
}

// withoutSmallFactors is a number of so many bits that no small prime divides.
func withoutSmallFactors(bits int) *big.Int {
	n := new(big.Int).SetBit(big.NewInt(1), bits-1, 1)
	for {
		small := false
		for d := int64(3); d < 760; d += 2 {
			small = small || new(big.Int).Mod(n, big.NewInt(d)).Sign() == 0
		}
		if !small {
			return n
		}
		n.Add(n, big.NewInt(2))
	}
}
