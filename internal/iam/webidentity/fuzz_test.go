// SPDX-License-Identifier: Apache-2.0

package webidentity_test

import (
	"net/url"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/webidentity"
)

// FuzzRead asks of every text that it does no harm, and that one which is accepted is a token that the issuer signed:
// another spelling of it is another text.
func FuzzRead(f *testing.F) {
	signed := map[string]bool{}
	for _, id := range []string{"ec", "rsa"} {
		token := sign(f, id, id, claims(nil))
		signed[token] = true
		f.Add(token)
	}
	f.Add(sign(f, "stranger-ec", "ec", claims(nil)))
	f.Add(encoded(`{"alg":"none"}`) + "." + encoded(`{}`) + ".AA")
	f.Add("..")
	keys := published(f)
	f.Fuzz(func(t *testing.T, text string) {
		token, err := webidentity.Read(text)
		if err != nil {
			if rule(err) == "" {
				t.Fatalf("%q: %v is not a refusal", text, err)
			}
			return
		}
		got, err := token.Verify(keys, noon)
		if err == nil && !signed[text] {
			t.Fatalf("%q is accepted: %+v", text, got)
		}
	})
}

// FuzzClaims asks that claims which the issuer signed, whatever they are, are read in one way.
func FuzzClaims(f *testing.F) {
	f.Add(`{"iss":"x","sub":"y","aud":"z","exp":1795435200,"iat":1}`)
	f.Add(`{"iss":"x","sub":"y","aud":["z"],"azp":"w","exp":1795435200.5,"iat":1,"kubernetes.io":{"namespace":"a"}}`)
	f.Add(`{"https://aws.amazon.com/tags":{"principal_tags":{"a":["b"]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return
		}
		got, err := check(t, sign(t, "ec", "ec", text))
		if err != nil {
			if rule(err) == "" {
				t.Fatalf("%q: %v is not a refusal", text, err)
			}
			return
		}
		if got.Issuer == "" || got.Subject == "" || len(got.EffectiveAudiences()) == 0 || !got.Expires.After(noon) || got.IssuedAt.After(noon.Add(time.Minute)) {
			t.Fatalf("%q is accepted: %+v", text, got)
		}
		if bound, err := got.Bound(); err == nil && got.Subject != "system:serviceaccount:"+bound.Namespace+":"+bound.ServiceAccount {
			t.Fatalf("%q is bound to %+v", text, bound)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"RSA","kid":"a","n":"AQAB","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","kid":"a","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		keys, err := webidentity.ParseKeys(raw)
		if err != nil && len(keys.IDs()) > 0 {
			t.Fatal("keys of a set that was refused")
		}
	})
}

func FuzzParseDiscovery(f *testing.F) {
	f.Add([]byte(`{"issuer":"` + issuer + `","jwks_uri":"https://x/keys"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := webidentity.ParseDiscovery(raw)
		if err != nil {
			return
		}
		if u, err := url.Parse(d.Keys); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			t.Fatalf("%q, %v", d.Keys, err)
		}
	})
}
