// SPDX-License-Identifier: Apache-2.0

package webidentity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"

	"muster.dev/muster/internal/iam/tokenrefusal"
	"muster.dev/muster/internal/iam/webidentity"
)

const issuer = "https://127.9.8.7/id/0123456789ABCDEF0123456789ABCDEF"

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// signers are the keys of the issuer, and of a stranger who calls its keys the same.
var signers = sync.OnceValue(func() map[string]crypto.Signer {
	all := map[string]crypto.Signer{}
	for _, name := range []string{"ec", "ec2", "stranger-ec"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		all[name] = key
	}
	for _, name := range []string{"rsa", "stranger-rsa"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		all[name] = key
	}
	return all
})

func published(t testing.TB) webidentity.Keys {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, id := range []string{"ec", "ec2", "rsa"} {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: signers()[id].Public(), KeyID: id, Use: "sig"})
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := webidentity.ParseKeys(raw)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// claims are those of a pod's token as kube-apiserver v1.36 writes them.
func claims(change map[string]any) map[string]any {
	all := map[string]any{
		"aud": []string{"sts.amazonaws.com"}, "exp": noon.Add(time.Hour).Unix(), "iat": noon.Unix(), "nbf": noon.Unix(), "iss": issuer,
		"jti": "0b0b0b0b-0000-4000-8000-000000000000", "sub": "system:serviceaccount:default:app",
		"kubernetes.io": map[string]any{
			"namespace": "default", "node": map[string]any{"name": "i-1", "uid": "n-1"}, "pod": map[string]any{"name": "app-1", "uid": "p-1"},
			"serviceaccount": map[string]any{"name": "app", "uid": "s-1"}, "warnafter": noon.Add(time.Minute).Unix(),
		},
	}
	maps.Copy(all, change)
	for key, value := range change {
		if value == nil {
			delete(all, key)
		}
	}
	return all
}

// sign makes a token by another implementation than the one under test.
func sign(t testing.TB, with, id string, content any) string {
	t.Helper()
	key := signers()[with]
	algorithm := jose.ES256
	if _, ok := key.(*rsa.PrivateKey); ok {
		algorithm = jose.RS256
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, isText := content.(string)
	if !isText {
		marshalled, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(marshalled)
	}
	signed, err := signer.Sign([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func check(t testing.TB, token string) (webidentity.Claims, error) {
	t.Helper()
	read, err := webidentity.Read(token)
	if err != nil {
		return webidentity.Claims{}, err
	}
	return read.Verify(published(t), noon)
}

func TestVerify(t *testing.T) {
	for _, id := range []string{"ec", "ec2", "rsa"} {
		token := sign(t, id, id, claims(nil))
		read, err := webidentity.Read(token)
		if err != nil || read.Issuer() != issuer || read.KeyID() != id {
			t.Fatalf("%s: %v, %v", id, read, err)
		}
		got, err := read.Verify(published(t), noon)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if got.Subject != "system:serviceaccount:default:app" || !got.Expires.Equal(noon.Add(time.Hour)) || !got.IssuedAt.Equal(noon) {
			t.Errorf("%+v", got)
		}
		if audience, err := got.For("other", "sts.amazonaws.com"); err != nil || audience != "sts.amazonaws.com" {
			t.Errorf("%q, %v", audience, err)
		}
		want := webidentity.Bound{Namespace: "default", ServiceAccount: "app", ServiceAccountUID: "s-1", Pod: "app-1", PodUID: "p-1", Node: "i-1", NodeUID: "n-1"}
		if bound, err := got.Bound(); err != nil || bound != want {
			t.Errorf("%+v, %v", bound, err)
		}
		for _, shown := range []string{read.String(), read.GoString()} {
			if strings.Contains(token, shown) || strings.Contains(shown, strings.Split(token, ".")[2]) {
				t.Errorf("the token is shown: %s", shown)
			}
		}
	}
}

func rule(err error) string {
	if refusal := (*tokenrefusal.Refusal)(nil); errors.As(err, &refusal) {
		return refusal.Rule
	}
	return ""
}

func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func TestClaimsThatAreRefused(t *testing.T) {
	text := func(change map[string]any) string {
		raw, _ := json.Marshal(claims(change))
		return string(raw)
	}
	for name, test := range map[string]struct {
		content any
		want    string
	}{
		"no issuer":                {claims(map[string]any{"iss": nil}), webidentity.RuleMissing},
		"no subject":               {claims(map[string]any{"sub": nil}), webidentity.RuleMissing},
		"no audience":              {claims(map[string]any{"aud": nil}), webidentity.RuleMissing},
		"an empty list":            {claims(map[string]any{"aud": []string{}}), webidentity.RuleMissing},
		"an empty audience":        {claims(map[string]any{"aud": []string{""}}), webidentity.RuleClaims},
		"an audience of null":      {claims(map[string]any{"aud": []any{nil}}), webidentity.RuleClaims},
		"an audience that is one":  {claims(map[string]any{"aud": 1}), webidentity.RuleClaims},
		"no end":                   {claims(map[string]any{"exp": nil}), webidentity.RuleMissing},
		"no beginning":             {claims(map[string]any{"iat": nil}), webidentity.RuleMissing},
		"an end that is a text":    {claims(map[string]any{"exp": "never"}), webidentity.RuleClaims},
		"an end before all time":   {claims(map[string]any{"exp": -1}), webidentity.RuleClaims},
		"an end after all time":    {claims(map[string]any{"exp": 1e300}), webidentity.RuleClaims},
		"it has ended":             {claims(map[string]any{"exp": noon.Unix()}), webidentity.RuleExpired},
		"it begins later":          {claims(map[string]any{"nbf": noon.Add(61 * time.Second).Unix()}), webidentity.RuleEarly},
		"it is of tomorrow":        {claims(map[string]any{"iat": noon.Add(61 * time.Second).Unix()}), webidentity.RuleEarly},
		"a long subject":           {claims(map[string]any{"sub": strings.Repeat("x", 1025)}), webidentity.RuleClaims},
		"a tag with two values":    {claims(map[string]any{"https://aws.amazon.com/tags": map[string]any{"principal_tags": map[string]any{"a": []string{"1", "2"}}}}), webidentity.RuleClaims},
		"a subject of two kinds":   {strings.Replace(text(nil), `"sub":`, `"sub":"system:serviceaccount:kube-system:admin","sub":`, 1), webidentity.RuleClaims},
		"a key in other capitals":  {strings.Replace(text(nil), `"sub":`, `"Sub":`, 1), webidentity.RuleMissing},
		"something behind":         {text(nil) + "{}", webidentity.RuleClaims},
		"a list":                   {"[" + text(nil) + "]", webidentity.RuleClaims},
		"half":                     {text(nil)[:80], webidentity.RuleClaims},
		"bytes that are not UTF-8": {strings.Replace(text(nil), "app", "a\xff", 1), webidentity.RuleClaims},
		"an end of null":           {strings.Replace(text(nil), `"nbf":`, `"nbf":null,"x":`, 1), ""},
	} {
		for _, id := range []string{"ec", "rsa"} {
			if _, err := check(t, sign(t, id, id, test.content)); rule(err) != test.want || test.want == "" && err != nil {
				t.Errorf("%s, %s: %v; want rule %q", name, id, err, test.want)
			}
		}
	}
	// Clocks may differ by a minute.
	if _, err := check(t, sign(t, "ec", "ec", claims(map[string]any{"iat": noon.Add(time.Minute).Unix(), "nbf": noon.Add(time.Minute).Unix()}))); err != nil {
		t.Error(err)
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	good := sign(t, "ec", "ec", claims(nil))
	parts := strings.Split(good, ".")
	header := func(text string) string { return encoded(text) + "." + parts[1] + "." + parts[2] }
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	hmacOfPublicKey := encoded(`{"alg":"HS256","kid":"rsa"}`)
	for name, test := range map[string]struct{ token, want string }{
		"nothing":                   {"", webidentity.RuleForm},
		"two parts":                 {parts[0] + "." + parts[1], webidentity.RuleForm},
		"four parts":                {good + ".AA", webidentity.RuleForm},
		"no signature":              {parts[0] + "." + parts[1] + ".", webidentity.RuleForm},
		"padding":                   {good + "=", webidentity.RuleForm},
		"a line break":              {good[:40] + "\n" + good[40:], webidentity.RuleForm},
		"a space in front":          {" " + good, webidentity.RuleForm},
		"too long":                  {good + strings.Repeat("A", 20_000), webidentity.RuleSize},
		"alg none":                  {header(`{"alg":"none","kid":"ec"}`), webidentity.RuleAlgorithm},
		"alg None":                  {header(`{"alg":"None","kid":"ec"}`), webidentity.RuleAlgorithm},
		"an HMAC by the public key": {hmacOfPublicKey + "." + parts[1] + "." + parts[2], webidentity.RuleAlgorithm},
		"ES384":                     {header(`{"alg":"ES384","kid":"ec"}`), webidentity.RuleAlgorithm},
		"no alg":                    {header(`{"kid":"ec"}`), webidentity.RuleAlgorithm},
		"alg in other capitals":     {header(`{"Alg":"ES256","kid":"ec"}`), webidentity.RuleAlgorithm},
		"two algs":                  {header(`{"alg":"ES256","alg":"RS256","kid":"ec"}`), webidentity.RuleHeader},
		"two kids":                  {header(`{"alg":"ES256","kid":"ec","kid":"rsa"}`), webidentity.RuleHeader},
		"an extension":              {header(`{"alg":"ES256","kid":"ec","crit":["b64"],"b64":false}`), webidentity.RuleHeader},
		"no kid":                    {header(`{"alg":"ES256"}`), webidentity.RuleKeyID},
		"an empty kid":              {header(`{"alg":"ES256","kid":""}`), webidentity.RuleKeyID},
		"a kid that is a number":    {header(`{"alg":"ES256","kid":1}`), webidentity.RuleHeader},
		"a kid that is a path":      {header(`{"alg":"ES256","kid":"../../dev/null"}`), webidentity.RuleKey},
		"the key of another alg":    {header(`{"alg":"RS256","kid":"ec"}`), webidentity.RuleAlgorithm},
		"another header":            {header(`{"alg":"ES256","kid":"ec","typ":"JWT"}`), webidentity.RuleSignature},
		"other claims":              {parts[0] + "." + encoded(`{"iss":"x","sub":"y","aud":"z","exp":9999999999,"iat":1}`) + "." + parts[2], webidentity.RuleSignature},
		"a stranger's":              {sign(t, "stranger-ec", "ec", claims(nil)), webidentity.RuleSignature},
		"a stranger's by RSA":       {sign(t, "stranger-rsa", "rsa", claims(nil)), webidentity.RuleSignature},
		"another key of the issuer": {sign(t, "ec2", "ec", claims(nil)), webidentity.RuleSignature},
		"a key that is not there":   {sign(t, "ec", "other", claims(nil)), webidentity.RuleKey},
		"half a signature":          {parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(signature[:32]), webidentity.RuleSignature},
		"a signature of zeros":      {parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)), webidentity.RuleSignature},
		"a signature and more":      {parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(append(signature, 0)), webidentity.RuleSignature},
	} {
		if _, err := check(t, test.token); rule(err) != test.want {
			t.Errorf("%s: %v; want rule %q", name, err, test.want)
		} else if strings.Contains(err.Error(), parts[2]) {
			t.Errorf("%s: the refusal repeats the token", name)
		}
	}
	// A key that comes along with the token is not read.
	own, err := json.Marshal(jose.JSONWebKey{Key: signers()["stranger-ec"].Public(), KeyID: "ec"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check(t, header(`{"alg":"ES256","kid":"ec","jwk":`+string(own)+`,"jku":"https://evil.example/keys"}`)); rule(err) != webidentity.RuleSignature {
		t.Errorf("%v", err)
	}
}

func TestAudiences(t *testing.T) {
	for name, test := range map[string]struct {
		change map[string]any
		want   bool
	}{
		"a text":                    {map[string]any{"aud": "sts.amazonaws.com"}, true},
		"one of two":                {map[string]any{"aud": []string{"vault", "sts.amazonaws.com"}}, true},
		"another":                   {map[string]any{"aud": []string{"vault"}}, false},
		"longer":                    {map[string]any{"aud": []string{"sts.amazonaws.com.evil"}}, false},
		"a party that is wanted":    {map[string]any{"aud": []string{"vault"}, "azp": "sts.amazonaws.com"}, true},
		"a party that is another's": {map[string]any{"azp": "vault"}, false},
	} {
		got, err := check(t, sign(t, "ec", "ec", claims(test.change)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := got.For("sts.amazonaws.com"); (err == nil) != test.want || err != nil && rule(err) != webidentity.RuleAudience {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBound(t *testing.T) {
	k := func(change map[string]any) map[string]any {
		bound := maps.Clone(claims(nil)["kubernetes.io"].(map[string]any))
		maps.Copy(bound, change)
		return map[string]any{"kubernetes.io": bound}
	}
	for name, test := range map[string]struct {
		change map[string]any
		want   bool
	}{
		"as it is":                     {nil, true},
		"not of a pod":                 {k(map[string]any{"pod": nil, "node": nil}), true},
		"no claim":                     {map[string]any{"kubernetes.io": nil}, false},
		"another subject":              {map[string]any{"sub": "system:serviceaccount:default:other"}, false},
		"another namespace":            {k(map[string]any{"namespace": "kube-system"}), false},
		"a pod without a uid":          {k(map[string]any{"pod": map[string]any{"name": "app-1"}}), false},
		"a pod without a name":         {k(map[string]any{"pod": map[string]any{"uid": "p-1"}}), false},
		"a node without a name":        {k(map[string]any{"node": map[string]any{"uid": "p-1"}}), false},
		"a service account without id": {k(map[string]any{"serviceaccount": map[string]any{"name": "app"}}), false},
	} {
		got, err := check(t, sign(t, "ec", "ec", claims(test.change)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := got.Bound(); (err == nil) != test.want || err != nil && rule(err) != webidentity.RuleBound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTags(t *testing.T) {
	got, err := check(t, sign(t, "ec", "ec", claims(map[string]any{
		"https://aws.amazon.com/tags":            map[string]any{"principal_tags": map[string]any{"team": []string{"a"}}, "transitive_tag_keys": []string{"team"}},
		"https://aws.amazon.com/source_identity": "alice",
	})))
	if err != nil || len(got.Tags) != 1 || got.Tags["team"] != "a" || len(got.TransitiveTagKeys) != 1 || got.SourceIdentity != "alice" {
		t.Errorf("%+v, %v", got, err)
	}
}

func BenchmarkVerify(b *testing.B) {
	keys := published(b)
	for _, id := range []string{"ec", "rsa"} {
		token := sign(b, id, id, claims(nil))
		b.Run(id, func(b *testing.B) {
			for b.Loop() {
				read, err := webidentity.Read(token)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := read.Verify(keys, noon); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(id+"/read alone", func(b *testing.B) {
			for b.Loop() {
				if _, err := webidentity.Read(token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
