// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/asn1"
	"math/big"
	"strings"
	"testing"

	"github.com/miekg/pkcs11"
)

func TestNewOrder(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	digest := make([]byte, 64)
	for _, tc := range []struct {
		name      string
		key       crypto.PublicKey
		r         request
		mechanism uint
		size      int
		want      string
	}{
		{"ECDSA", ec.Public(), request{Hash: "SHA-256", Digest: digest[:32]}, pkcs11.CKM_ECDSA, 32, ""},
		{"ECDSA with a longer digest", ec.Public(), request{Hash: "SHA-512", Digest: digest}, pkcs11.CKM_ECDSA, 32, ""},
		{"PKCS #1", private.Public(), request{Hash: "SHA-256", Digest: digest[:32], Padding: "pkcs1v15"}, pkcs11.CKM_RSA_PKCS, 19 + 32, ""},
		{"PSS", private.Public(), request{Hash: "SHA-384", Digest: digest[:48], Padding: "pss", Salt: 48}, pkcs11.CKM_RSA_PKCS_PSS, 48, ""},
		{"ECDSA with a padding", ec.Public(), request{Hash: "SHA-256", Digest: digest[:32], Padding: "pss"}, 0, 0, "RSA"},
		{"RSA without", private.Public(), request{Hash: "SHA-256", Digest: digest[:32]}, 0, 0, "padding"},
		{"a salt in PKCS #1", private.Public(), request{Hash: "SHA-256", Digest: digest[:32], Padding: "pkcs1v15", Salt: 1}, 0, 0, "padding"},
		{"a negative salt", private.Public(), request{Hash: "SHA-256", Digest: digest[:32], Padding: "pss", Salt: -1}, 0, 0, "padding"},
		{"a salt too long", private.Public(), request{Hash: "SHA-256", Digest: digest[:32], Padding: "pss", Salt: 257}, 0, 0, "padding"},
		{"a digest too short", ec.Public(), request{Hash: "SHA-256", Digest: digest[:31]}, 0, 0, "31 bytes"},
		{"SHA-1", ec.Public(), request{Hash: "SHA-1", Digest: digest[:20]}, 0, 0, "not known"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, err := newOrder(tc.key, tc.r)
			switch {
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want == "" && (o.mechanism.Mechanism != tc.mechanism || len(o.data) != tc.size):
				t.Errorf("mechanism %#x, %d bytes", o.mechanism.Mechanism, len(o.data))
			}
		})
	}
}

func TestToASN1(t *testing.T) {
	for _, raw := range [][]byte{{1, 2}, {0xff, 0x80}, {0, 0, 0, 1, 0, 0, 0, 2}} {
		der, err := toASN1(raw)
		if err != nil {
			t.Fatal(err)
		}
		var s struct{ R, S *big.Int }
		if rest, err := asn1.Unmarshal(der, &s); err != nil || len(rest) > 0 {
			t.Fatalf("%x: %v", der, err)
		}
		half := len(raw) / 2
		if s.R.Cmp(new(big.Int).SetBytes(raw[:half])) != 0 || s.S.Cmp(new(big.Int).SetBytes(raw[half:])) != 0 {
			t.Errorf("%x became %v, %v", raw, s.R, s.S)
		}
	}
	for _, raw := range [][]byte{nil, {1}, {1, 2, 3}} {
		if _, err := toASN1(raw); err == nil {
			t.Errorf("%x: accepted", raw)
		}
	}
}

func TestPublicKeys(t *testing.T) {
	oids := map[elliptic.Curve]asn1.ObjectIdentifier{
		elliptic.P224(): {1, 3, 132, 0, 33},
		elliptic.P256(): {1, 2, 840, 10045, 3, 1, 7}, elliptic.P384(): {1, 3, 132, 0, 34}, elliptic.P521(): {1, 3, 132, 0, 35},
	}
	marshal := func(v any) []byte {
		der, err := asn1.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	for curve, oid := range oids {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		point, err := key.PublicKey.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		for name, form := range map[string][]byte{"as in PKCS #11": marshal(point), "bare": point} {
			got, err := ecdsaKey(marshal(oid), form)
			if curve == elliptic.P224() {
				if err == nil {
					t.Errorf("P-224 %s: accepted", name)
				}
			} else if err != nil || !same(got, key.Public()) {
				t.Errorf("%s %s: %v", curve.Params().Name, name, err)
			}
		}
		point[len(point)-1] ^= 1
		for name, form := range map[string][]byte{"not on the curve": marshal(point), "cut": point[:20], "nothing": nil} {
			if _, err := ecdsaKey(marshal(oid), form); err == nil {
				t.Errorf("%s %s: accepted", curve.Params().Name, name)
			}
		}
	}
	if _, err := ecdsaKey([]byte{5, 0}, nil); err == nil {
		t.Error("a key on no curve: accepted")
	}

	n := new(big.Int).Lsh(big.NewInt(1), 2047)
	if key, err := rsaKey(n.Bytes(), []byte{1, 0, 1}); err != nil || !same(key, &rsa.PublicKey{N: n, E: 65537}) {
		t.Errorf("RSA: %v, %v", key, err)
	}
	if _, err := rsaKey(n.Bytes()[1:], []byte{1, 0, 1}); err == nil {
		t.Error("a short RSA key: accepted")
	}
	if _, err := rsaKey(n.Bytes(), []byte{1, 0, 0, 0, 1}); err == nil {
		t.Error("a large exponent: accepted")
	}
}
