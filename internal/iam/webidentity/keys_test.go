// SPDX-License-Identifier: Apache-2.0

package webidentity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	jose "gopkg.in/go-jose/go-jose.v2"

	"muster.dev/muster/internal/iam/webidentity"
)

func setOf(t testing.TB, keys ...jose.JSONWebKey) string {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestParseKeys(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	ec := jose.JSONWebKey{Key: signers()["ec"].Public(), KeyID: "ec", Use: "sig", Algorithm: "ES256"}
	modular := jose.JSONWebKey{Key: signers()["rsa"].Public(), KeyID: "rsa"}
	with := func(k jose.JSONWebKey, change func(*jose.JSONWebKey)) jose.JSONWebKey { change(&k); return k }
	for name, test := range map[string]struct {
		raw  string
		want []string // nil if all is refused
	}{
		"both":                    {setOf(t, ec, modular), []string{"ec", "rsa"}},
		"none":                    {setOf(t), []string{}},
		"a key to encrypt with":   {setOf(t, ec, with(modular, func(k *jose.JSONWebKey) { k.Use = "enc" })), []string{"ec"}},
		"a curve of another kind": {setOf(t, ec, jose.JSONWebKey{Key: p384.Public(), KeyID: "p384"}), []string{"ec"}},
		"another algorithm":       {setOf(t, ec, with(modular, func(k *jose.JSONWebKey) { k.Algorithm = "PS256" })), []string{"ec"}},
		"a symmetric key":         {setOf(t, ec, jose.JSONWebKey{Key: []byte("secret"), KeyID: "oct"}), []string{"ec"}},
		"a key without an id":     {setOf(t, ec, with(modular, func(k *jose.JSONWebKey) { k.KeyID = "" })), []string{"ec"}},
		"two keys of one id":      {setOf(t, ec, with(modular, func(k *jose.JSONWebKey) { k.KeyID = "ec" })), nil},
		"a short key":             {setOf(t, ec, jose.JSONWebKey{Key: short.Public(), KeyID: "short"}), nil},
		"a point off the curve":   {strings.Replace(setOf(t, ec), `"y":"`, `"y":"A`, 1), nil},
		"an even exponent":        {strings.Replace(setOf(t, modular), `"e":"AQAB"`, `"e":"AQAA"`, 1), nil},
		"an exponent of one":      {strings.Replace(setOf(t, modular), `"e":"AQAB"`, `"e":"AQ"`, 1), nil},
		"keys twice":              {`{"keys":[],"keys":[]}`, nil},
		"a field twice":           {strings.Replace(setOf(t, ec), `"kid":`, `"kid":"x","kid":`, 1), nil},
		"a list":                  {`[]`, nil},
		"nothing":                 {``, nil},
		"too long":                {`{"keys":[]}` + strings.Repeat(" ", webidentity.MaxDocument), nil},
		"too many":                {`{"keys":[` + strings.Repeat(`{},`, 100) + `{}]}`, nil},
	} {
		keys, err := webidentity.ParseKeys([]byte(test.raw))
		if (err == nil) != (test.want != nil) || err == nil && !slices.Equal(keys.IDs(), test.want) {
			t.Errorf("%s: %v, %v; want %v", name, keys.IDs(), err, test.want)
		}
	}
}

func TestParseDiscovery(t *testing.T) {
	document := func(iss, keys string) string { return fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q,"x":1}`, iss, keys) }
	for name, test := range map[string]struct{ raw, want string }{
		"its own":           {document(issuer, issuer+"/keys"), issuer + "/keys"},
		"elsewhere":         {document(issuer, "https://keys.example/1"), "https://keys.example/1"},
		"of nobody":         {document("", issuer+"/keys"), ""},
		"of a long name":    {document(strings.Repeat("x", 1025), issuer+"/keys"), ""},
		"by http":           {document(issuer, "http://127.9.8.7/keys"), ""},
		"with a user":       {document(issuer, "https://a:b@127.9.8.7/keys"), ""},
		"a file":            {document(issuer, "file:///etc/passwd"), ""},
		"without a host":    {document(issuer, "https:///keys"), ""},
		"without keys":      {`{"issuer":"` + issuer + `"}`, ""},
		"two issuers":       {strings.Replace(document(issuer, issuer), `{`, `{"issuer":"x",`, 1), ""},
		"in other capitals": {strings.Replace(document(issuer, issuer), `issuer"`, `Issuer"`, 1), ""},
		"too long":          {document(issuer, issuer) + strings.Repeat(" ", webidentity.MaxDocument), ""},
	} {
		got, err := webidentity.ParseDiscovery([]byte(test.raw))
		if got.Keys != test.want || (err == nil) != (test.want != "") || err == nil && got.Issuer != issuer {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}
