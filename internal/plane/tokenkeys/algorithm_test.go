// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func ringOf(t *testing.T, algorithm Algorithm) Ring {
	t.Helper()
	r, err := New(noon, algorithm, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A cluster keeps its algorithm: verifiers that know one alone go on.
func TestAlgorithmIsKept(t *testing.T) {
	for _, algorithm := range []Algorithm{RS256, ES256} {
		r, err := ringOf(t, algorithm).Rotate(noon, time.Hour, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Parse(formatted(t, r))
		if err != nil || len(read.keys) != 2 {
			t.Fatalf("%s: %v", algorithm, err)
		}
		for i, k := range read.keys {
			if k.Algorithm != algorithm || k.ID != r.keys[i].ID || !k.Private.(interface{ Equal(crypto.PrivateKey) bool }).Equal(r.keys[i].Private) {
				t.Errorf("%s: key %d is %s", algorithm, i, k.Algorithm)
			}
		}
	}
	if bits := ringOf(t, RS256).keys[0].Public.(*rsa.PublicKey).N.BitLen(); bits != 2048 {
		t.Errorf("RSA keys have %d bits", bits)
	}
	if _, err := New(noon, "none", rand.Reader); err == nil {
		t.Error("a key of no algorithm is made")
	}
}

// Keys of other kinds, and halves of another key, are refused.
func TestParseAlgorithms(t *testing.T) {
	halves := func(change func(mine, other *keyRecord)) []byte {
		var mine, other record
		for algorithm, into := range map[Algorithm]*record{RS256: &mine, ES256: &other} {
			if err := json.Unmarshal(formatted(t, ringOf(t, algorithm)), into); err != nil {
				t.Fatal(err)
			}
		}
		change(&mine.Keys[0], &other.Keys[0])
		raw, err := json.Marshal(mine)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for want, raw := range map[string][]byte{
		`must be one PEM block "RSA PRIVATE KEY"`: halves(func(mine, other *keyRecord) { mine.Private = other.Private }),
		`must be one PEM block "EC PRIVATE KEY"`:  halves(func(mine, other *keyRecord) { mine.Public = other.Public }),
		"is not a private key of RS256": halves(func(mine, other *keyRecord) {
			mine.Private = strings.ReplaceAll(other.Private, "EC PRIVATE", "RSA PRIVATE")
		}),
	} {
		if _, err := Parse(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Of(noon, other); err == nil || !strings.Contains(err.Error(), "must be an RSA key of 2048 to 4096 bits or an ECDSA key on P-256") {
		t.Errorf("a key on P-384: %v", err)
	}
	if _, err := algorithmOf(&rsa.PublicKey{N: ringOf(t, RS256).keys[0].Public.(*rsa.PublicKey).N, E: 65537}); err != nil {
		t.Error(err)
	}
}
