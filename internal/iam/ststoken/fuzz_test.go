// SPDX-License-Identifier: Apache-2.0

package ststoken_test

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/ststoken"
)

// FuzzParse asks of every text that it does no harm, and that a token which is accepted is spelled in the one way that
// it can be.
func FuzzParse(f *testing.F) {
	for _, w := range []wish{{}, {session: session}, {base: "http://127.0.0.1:4566", region: "local-1"}, {base: "https://[::1]:8443"}, {base: "https://plain.example:443"}} {
		f.Add([]byte(w.presign(f)))
	}
	f.Add([]byte("https://sts.amazonaws.com/?Action=GetCallerIdentity&x-amz-date=%zz"))
	f.Add([]byte("http://"))
	h := hosts(f)
	f.Fuzz(func(t *testing.T, url []byte) {
		_, _ = ststoken.Parse(string(url), cluster, h, noon)
		_, _ = ststoken.Parse(ststoken.Prefix+string(url), cluster, h, noon)
		raw := ststoken.Prefix + base64.RawURLEncoding.EncodeToString(url)
		tok, err := ststoken.Parse(raw, cluster, h, noon)
		if err != nil {
			return
		}
		plain := strings.NewReplacer(":443/?", "/?", ":80/?", "/?").Replace(string(url))
		if tok.URL() != plain {
			t.Fatalf("%q is read as %q", url, tok.URL())
		}
		if _, err := sigv4.ReadPresigned(tok.Request(cluster)); err != nil {
			t.Fatalf("%q is accepted, and its request is not: %v", url, err)
		}
		if age := noon.Sub(tok.Signed.SignedAt); age >= ststoken.Lifetime || age < -ststoken.MaxAhead || !tok.Expires.After(noon) {
			t.Fatalf("%q is accepted at the age of %s", url, age)
		}
	})
}

// TestAChangedTokenIsRefused changes each byte of a token's URL to others. The scheme is not signed, so only one is
// accepted.
func TestAChangedTokenIsRefused(t *testing.T) {
	good := wish{session: session}.presign(t)
	h := hosts(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	verified := 0
	for i := range len(good) {
		for range 40 {
			changed := []byte(good)
			if changed[i] = byte(random.IntN(96) + 32); changed[i] == good[i] {
				continue
			}
			tok, err := ststoken.Parse(ststoken.Encode(string(changed)), cluster, h, noon)
			if err != nil {
				continue
			}
			verified++
			if err := tok.Verify(sigv4.Derive(secret, tok.Signed.Scope), cluster); err == nil {
				t.Fatalf("seed %d: byte %d can be %q:\n%s", seed, i, changed[i], changed)
			}
		}
	}
	if verified < 100 {
		t.Errorf("%d changed tokens only came as far as the signature: the test shows little", verified)
	}
}

func BenchmarkParse(b *testing.B) {
	raw, h := ststoken.Encode(wish{session: strings.Repeat(session, 10)}.presign(b)), hosts(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := ststoken.Parse(raw, cluster, h, noon); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOwn is all that a token costs which is checked here: a machine's, whose session token is long.
func BenchmarkOwn(b *testing.B) {
	raw, h := ststoken.Encode(wish{session: strings.Repeat(session, 10)}.presign(b)), hosts(b)
	tok, err := ststoken.Parse(raw, cluster, h, noon)
	if err != nil {
		b.Fatal(err)
	}
	key := sigv4.Derive(secret, tok.Signed.Scope)
	b.ReportAllocs()
	for b.Loop() {
		tok, err := ststoken.Parse(raw, cluster, h, noon)
		if err != nil {
			b.Fatal(err)
		}
		if err := tok.Verify(key, cluster); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRefused is what a flood of bad tokens costs.
func BenchmarkRefused(b *testing.B) {
	h := hosts(b)
	for name, url := range map[string]string{
		"host":    "https://sts.example.com/?Action=GetCallerIdentity",
		"expired": wish{at: noon.AddDate(0, 0, -1)}.presign(b),
	} {
		raw := ststoken.Encode(url)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ststoken.Parse(raw, cluster, h, noon); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}
