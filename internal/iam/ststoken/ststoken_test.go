// SPDX-License-Identifier: Apache-2.0

package ststoken_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenrefusal"
)

const (
	keyID   = "ASIAQAAAAAAAAAAAAAAA"
	secret  = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	session = "IQoJb3JpZ2luX2VjEPT//////////wEaCXVzLWVhc3QtMSJHMEUCIQ+/=="
	cluster = "demo"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// wish is a token to make with the SDK's signer, as aws eks get-token and aws-iam-authenticator do.
type wish struct {
	base, region, service, cluster, session, query string
	headers                                        map[string]string
	at                                             time.Time
}

func (w wish) presign(t testing.TB) string {
	t.Helper()
	or := func(s *string, other string) {
		if *s == "" {
			*s = other
		}
	}
	or(&w.base, "https://sts.eu-west-1.amazonaws.com")
	or(&w.region, "eu-west-1")
	or(&w.service, "sts")
	or(&w.cluster, cluster)
	or(&w.query, "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=60")
	if w.at.IsZero() {
		w.at = noon
	}
	r, err := http.NewRequest(http.MethodGet, w.base+"/?"+w.query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(ststoken.ClusterHeader, w.cluster)
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	url, _, err := v4.NewSigner().PresignHTTP(t.Context(), aws.Credentials{AccessKeyID: keyID, SecretAccessKey: secret, SessionToken: w.session},
		r, sigv4.EmptyPayload, w.service, w.region, w.at)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

func hosts(t testing.TB) ststoken.Hosts {
	t.Helper()
	h, err := ststoken.NewHosts("aws", []string{"local-1"}, []string{"sts.example.internal:8443", "http://127.0.0.1:4566=local-1", "https://[::1]:8443", "https://plain.example:443"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTokensThatToolsMake(t *testing.T) {
	for _, c := range []struct {
		name   string
		wish   wish
		scheme string
		host   string
	}{
		{name: "of a long-lived key", host: "sts.eu-west-1.amazonaws.com"},
		{name: "of a session", wish: wish{session: session}, host: "sts.eu-west-1.amazonaws.com"},
		{name: "for the global endpoint", wish: wish{base: "https://sts.amazonaws.com", region: "us-east-1"}, host: "sts.amazonaws.com"},
		{name: "for a FIPS endpoint", wish: wish{base: "https://sts-fips.us-west-2.amazonaws.com", region: "us-west-2"}, host: "sts-fips.us-west-2.amazonaws.com"},
		{name: "for a dualstack endpoint", wish: wish{base: "https://sts.us-west-2.api.aws", region: "us-west-2"}, host: "sts.us-west-2.api.aws"},
		{name: "for the region here", wish: wish{base: "https://sts.local-1.amazonaws.com", region: "local-1"}, host: "sts.local-1.amazonaws.com"},
		{name: "for an endpoint with a port, in any region", wish: wish{base: "https://sts.example.internal:8443", region: "mars-1"}, host: "sts.example.internal:8443"},
		{name: "for an endpoint with http", wish: wish{base: "http://127.0.0.1:4566", region: "local-1", session: session}, scheme: "http", host: "127.0.0.1:4566"},
		{name: "for an IPv6 address", wish: wish{base: "https://[::1]:8443"}, host: "[::1]:8443"},
		{name: "for an endpoint whose port the SDK does not sign", wish: wish{base: "https://plain.example:443"}, host: "plain.example"},
		{name: "good for 900 seconds", wish: wish{query: "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=900"}, host: "sts.eu-west-1.amazonaws.com"},
		{name: "good for no time, which STS does not mind", wish: wish{query: "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=0"}, host: "sts.eu-west-1.amazonaws.com"},
		{name: "from the last moment", wish: wish{at: noon.Add(time.Second - 15*time.Minute)}, host: "sts.eu-west-1.amazonaws.com"},
		{name: "five minutes ahead", wish: wish{at: noon.Add(5 * time.Minute)}, host: "sts.eu-west-1.amazonaws.com"},
		{name: "for a cluster with a name to escape", wish: wish{cluster: "a/b  c"}, host: "sts.eu-west-1.amazonaws.com"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := c.wish.presign(t)
			raw := ststoken.Encode(url)
			tok, err := ststoken.Parse(raw, cluster, hosts(t), noon)
			if err != nil {
				t.Fatalf("%v\n%s", err, url)
			}
			if c.scheme == "" {
				c.scheme = "https"
			}
			if tok.Scheme != c.scheme || tok.Host != c.host || tok.Region != tok.Signed.Region || tok.Signed.SessionToken != c.wish.session || tok.Signed.AccessKeyID != keyID {
				t.Errorf("read %s %s %s %+v", tok.Scheme, tok.Host, tok.Region, tok.Signed.Credential)
			}
			if want := strings.Replace(url, ":443", "", 1); tok.URL() != want {
				t.Errorf("URL() = %q, want %q", tok.URL(), want)
			}
			if !tok.Expires.Equal(tok.Signed.SignedAt.Add(15 * time.Minute)) {
				t.Errorf("expires at %s", tok.Expires)
			}
			name := c.wish.cluster
			if name == "" {
				name = cluster
			}
			key := sigv4.Derive(secret, tok.Signed.Scope)
			if err := tok.Verify(key, name); err != nil {
				t.Errorf("not verified: %v", err)
			}
			if err := tok.Verify(key, name+"2"); err == nil {
				t.Error("it is good for another cluster, too")
			}
			if err := tok.Verify(sigv4.Derive(secret+"2", tok.Signed.Scope), name); err == nil {
				t.Error("another key verifies it, too")
			}
		})
	}
}

func TestTokensRefused(t *testing.T) {
	good := wish{session: session}.presign(t)
	edit := func(pairs ...string) string {
		out := strings.NewReplacer(pairs...).Replace(good)
		if out == good {
			t.Fatalf("%q changes nothing", pairs)
		}
		return ststoken.Encode(out)
	}
	whole := ststoken.Encode
	_, query, _ := strings.Cut(good, "?")
	query = "?" + query
	for _, c := range []struct{ name, raw, rule, says string }{
		{"nothing", "", ststoken.RulePrefix, "begins with k8s-aws-v1."},
		{"too large", strings.Repeat("\x00", 4097), ststoken.RuleSize, "more than 4096 bytes"},
		{"just not too large", ststoken.Prefix + strings.Repeat("A", 4085), ststoken.RuleEncoding, ""},
		{"another version", "k8s-aws-v2.aaaa", ststoken.RulePrefix, ""},
		{"a prefix in upper case", "K8S-AWS-V1." + whole(good)[11:], ststoken.RulePrefix, ""},
		{"a space in front", " " + whole(good), ststoken.RulePrefix, ""},
		{"no base64", "k8s-aws-v1.decodingerror", ststoken.RuleEncoding, ""},
		{"one character too few", "k8s-aws-v1.decod", ststoken.RuleEncoding, ""},
		{"the alphabet of standard base64", ststoken.Prefix + base64.RawStdEncoding.EncodeToString([]byte("https://sts?>>?~~")), ststoken.RuleEncoding, ""},
		{"padding", ststoken.Prefix + base64.URLEncoding.EncodeToString([]byte("https://x/?")), ststoken.RuleEncoding, ""},
		{"a line break behind", whole(good) + "\n", ststoken.RuleEncoding, ""},
		{"a line break within", whole(good)[:40] + "\r\n" + whole(good)[40:], ststoken.RuleEncoding, ""},
		{"unused bits that are set", ststoken.Prefix + "YX", ststoken.RuleEncoding, ""},
		{"a control character in the URL", whole(good + "\x00"), ststoken.RuleURL, ""},
		{"a line break in the URL", whole(good + "\n"), ststoken.RuleURL, ""},
		{"a space in the URL", whole(" " + good), ststoken.RuleURL, ""},
		{"letters beyond ASCII", whole(strings.Replace(good, "k8s", "\u212a8s", 1)), ststoken.RuleURL, ""},
		{"a fragment", whole(good + "#x"), ststoken.RuleURL, ""},
		{"no URL", whole(":ab:cd.af:/asda"), ststoken.RuleURL, ""},
		{"an empty URL", whole(""), ststoken.RuleURL, ""},
		{"a URL without scheme", whole("//sts.eu-west-1.amazonaws.com/" + query), ststoken.RuleURL, ""},
		{"http", edit("https://", "http://"), ststoken.RuleScheme, `saw "http"`},
		{"http to an endpoint that has https", whole("http://sts.example.internal:8443/" + query), ststoken.RuleScheme, ""},
		{"http to nobody", whole("http://"), ststoken.RuleScheme, ""},
		{"https to an endpoint that has http", whole("https://127.0.0.1:4566/" + query), ststoken.RuleHost, ""},
		{"a scheme in upper case", edit("https://", "HTTPS://"), ststoken.RuleScheme, ""},
		{"another scheme", edit("https://", "file://"), ststoken.RuleScheme, ""},
		{"another host", whole("https://google.com"), ststoken.RuleHost, `saw "google.com"; use an STS endpoint of partition aws`},
		{"no host", whole("https:///" + query), ststoken.RuleHost, ""},
		{"a host in upper case", edit("sts.eu", "STS.eu"), ststoken.RuleHost, ""},
		{"a dot behind the host", edit(".com/", ".com./"), ststoken.RuleHost, ""},
		{"a port", edit(".com/", ".com:8443/"), ststoken.RuleHost, ""},
		{"the port of https", edit(".com/", ".com:443/"), ststoken.RuleHost, "leave the port out"},
		{"a user", edit("https://", "https://me@"), ststoken.RuleHost, ""},
		{"a user that looks like a host", edit(".com/", ".com@evil.example/"), ststoken.RuleHost, ""},
		{"a backslash", edit(".com/", `.com\@evil.example/`), ststoken.RuleHost, ""},
		{"an escape in the host", edit("sts.eu", "sts%2Eeu"), ststoken.RuleHost, ""},
		{"a path", whole("https://sts.amazonaws.com/abc"), ststoken.RulePath, `saw "/abc"`},
		{"no path", edit(".com/?", ".com?"), ststoken.RulePath, ""},
		{"two slashes", edit(".com/?", ".com//?"), ststoken.RulePath, ""},
		{"a dot as path", edit(".com/?", ".com/.?"), ststoken.RulePath, ""},
		{"an escaped slash", edit(".com/?", ".com/%2F?"), ststoken.RulePath, ""},
		{"no query", whole("https://sts.amazonaws.com/"), ststoken.RuleParameter, ""},
		{"an unknown parameter", whole("https://sts.amazonaws.com/?NoInWhiteList=abc"), ststoken.RuleParameter, `saw "NoInWhiteList"; presign GetCallerIdentity without further parameters`},
		{"a second question mark", edit("/?", "/??"), ststoken.RuleParameter, ""},
		{"an ampersand at the end", whole(good + "&"), ststoken.RuleParameter, ""},
		{"two ampersands", edit("&Version", "&&Version"), ststoken.RuleParameter, ""},
		{"a semicolon for an ampersand", edit("&Version", ";Version"), ststoken.RuleValue, "Action"},
		{"a parameter twice", whole("https://sts.amazonaws.com/?Action=GetCallerIdentity&Action=GetCallerIdentity"), ststoken.RuleDuplicate, ""},
		{"a parameter twice in two spellings, as in CVE-2022-2385", whole(good + "&x-amz-credential=eve"), ststoken.RuleDuplicate, `saw "x-amz-credential"`},
		{"a second signature", whole(good + "&X-Amz-Signature=" + strings.Repeat("0", 64)), ststoken.RuleDuplicate, ""},
		{"a parameter in lower case", edit("Action=", "action="), ststoken.RuleParameter, `saw "action"; spell it Action`},
		{"a parameter in upper case", edit("X-Amz-Date=", "X-AMZ-DATE="), ststoken.RuleParameter, "spell it X-Amz-Date"},
		{"a name that is escaped", edit("X-Amz-Date=", "X%2DAmz-Date="), ststoken.RuleParameter, ""},
		{"a parameter without value", edit("Version=2011-06-15", "Version"), ststoken.RuleValue, "Version"},
		{"a parameter with an empty value", edit("Version=2011-06-15", "Version="), ststoken.RuleValue, ""},
		{"an empty session token", edit("X-Amz-Security-Token="+escape(session), "X-Amz-Security-Token="), ststoken.RuleValue, ""},
		{"an escape in lower case", edit("%2F", "%2f"), ststoken.RuleValue, ""},
		{"an escape that is not needed", edit("GetCaller", "%47etCaller"), ststoken.RuleValue, ""},
		{"no escape where one is needed", edit("%2F", "/"), ststoken.RuleValue, ""},
		{"a plus", edit("%2B", "+"), ststoken.RuleValue, ""},
		{"a percent sign that escapes nothing", edit("X-Amz-Expires=60", "X-Amz-Expires=60%gh"), ststoken.RuleValue, ""},
		{"a percent sign at the end", edit("X-Amz-Expires=60", "X-Amz-Expires=60%"), ststoken.RuleValue, ""},
		{"half an escape", edit("X-Amz-Expires=60", "X-Amz-Expires=60%2"), ststoken.RuleValue, ""},
		{"another action", edit("GetCallerIdentity", "GetSessionToken"), ststoken.RuleAction, `saw "GetSessionToken"`},
		{"an action in lower case", edit("GetCallerIdentity", "getcalleridentity"), ststoken.RuleAction, ""},
		{"no action", edit("Action=GetCallerIdentity&", ""), ststoken.RuleMissing, "no Action"},
		{"another version of STS", edit("2011-06-15", "2012-06-15"), ststoken.RuleVersion, ""},
		{"no version", edit("&Version=2011-06-15", ""), ststoken.RuleMissing, "no Version"},
		{"no expiry", edit("&X-Amz-Expires=60", ""), ststoken.RuleMissing, "no X-Amz-Expires"},
		{"no date", edit("&X-Amz-Date=20261121T120000Z", ""), ststoken.RuleMissing, "no X-Amz-Date"},
		{"another algorithm", edit("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), ststoken.RuleSignature, "algorithm"},
		{"a header that is not the cluster's id", edit("k8s-aws-id", "k8s-aws-i"), ststoken.RuleSignedHeaders, `saw "host;x-k8s-aws-i"; sign exactly host;x-k8s-aws-id`},
		{"the cluster's id only", edit("host%3Bx-k8s", "x-k8s"), ststoken.RuleSignedHeaders, ""},
		{"no signed cluster", whole(strings.Replace(good, "%3Bx-k8s-aws-id", "", 1)), ststoken.RuleSignedHeaders, `saw "host"`},
		{"a further signed header", whole(wish{headers: map[string]string{"Accept": "application/json"}}.presign(t)), ststoken.RuleSignedHeaders, "accept;host;x-k8s-aws-id"},
		{"signed headers in upper case", edit("host%3Bx-k8s", "Host%3Bx-k8s"), ststoken.RuleSignedHeaders, ""},
		{"an expiry that is too late", edit("Expires=60", "Expires=901"), ststoken.RuleExpires, "15m1s"},
		{"an expiry beyond all bounds", edit("Expires=60", "Expires=9999999"), ststoken.RuleExpires, ""},
		{"an expiry before the beginning", edit("Expires=60", "Expires=-1"), ststoken.RuleExpires, ""},
		{"an expiry with a zero in front", edit("Expires=60", "Expires=060"), ststoken.RuleExpires, ""},
		{"an expiry with a fraction", edit("Expires=60", "Expires=6.5"), ststoken.RuleExpires, ""},
		{"another service", whole(wish{service: "s3"}.presign(t)), ststoken.RuleService, `saw "s3"`},
		{"the region of another host", whole(wish{region: "eu-west-2"}.presign(t)), ststoken.RuleRegion, `saw "eu-west-2"; sign for region eu-west-1`},
		{"a region at the global endpoint", whole(wish{base: "https://sts.amazonaws.com"}.presign(t)), ststoken.RuleRegion, "us-east-1"},
		{"another region at an endpoint with a region", whole(wish{base: "http://127.0.0.1:4566"}.presign(t)), ststoken.RuleRegion, "local-1"},
		{"a date that is none", edit("X-Amz-Date=20261121T120000Z", "X-Amz-Date=xxxxxxx"), ststoken.RuleSignature, `date "xxxxxxx"`},
		{"a date with a fraction", edit("X-Amz-Date=20261121T120000Z", "X-Amz-Date=20261121T120000.5Z"), ststoken.RuleSignature, "date"},
		{"the 31st of November", edit("20261121", "20261131"), ststoken.RuleSignature, "date"},
		{"a scope of another day", edit("%2F20261121%2F", "%2F20261120%2F"), ststoken.RuleSignature, "day of X-Amz-Date"},
		{"a scope with too few parts", edit("%2Faws4_request", ""), ststoken.RuleSignature, "credential"},
		{"a scope with too many parts", edit("%2Faws4_request", "%2Faws4_request%2Faws4_request"), ststoken.RuleSignature, "credential"},
		{"a scope with another end", edit("%2Faws4_request", "%2Faws5_request"), ststoken.RuleSignature, "credential"},
		{"a key id with other signs", edit(keyID, "AKIA.EXAMPLE"), ststoken.RuleSignature, "credential"},
		{"a signature that is short", whole(good[:len(good)-1]), ststoken.RuleSignature, "64 hex digits"},
		{"a signature that is long", whole(good + "0"), ststoken.RuleSignature, "64 hex digits"},
		{"a signature of other letters", whole(good[:len(good)-1] + "g"), ststoken.RuleSignature, "64 hex digits"},
		{"a signature in upper case", whole(good[:len(good)-1] + "A"), ststoken.RuleSignature, "lower case"},
		{"15 minutes old", whole(wish{at: noon.Add(-15 * time.Minute)}.presign(t)), ststoken.RuleExpired, "saw date 20261121T114500Z, and it is 20261121T120000Z; make a new token"},
		{"from 1990", whole(wish{at: time.Date(1990, 4, 22, 1, 2, 3, 0, time.UTC)}.presign(t)), ststoken.RuleExpired, ""},
		{"from the future", whole(wish{at: noon.Add(5*time.Minute + time.Second)}.presign(t)), ststoken.RuleEarly, "set the clock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok, err := ststoken.Parse(c.raw, cluster, hosts(t), noon)
			r, ok := err.(*tokenrefusal.Refusal) //nolint:errorlint // the contract is the type itself
			if !ok {
				t.Fatalf("got %v and %v, want a refusal by %q", tok, err, c.rule)
			}
			if r.Rule != c.rule || !strings.Contains(r.Error(), c.says) || !strings.HasPrefix(r.Error(), c.rule+": ") {
				t.Errorf("got %v\nwant %s that says %q", r, c.rule, c.says)
			}
			if r.Fix == "" || len(r.Error()) > 400 {
				t.Errorf("%d bytes, and the fix is %q", len(r.Error()), r.Fix)
			}
			if strings.Contains(r.Error(), "IQoJ") || strings.Contains(r.Error(), good[len(good)-20:]) {
				t.Errorf("the refusal has a secret: %v", r)
			}
		})
	}
	t.Run("a cluster without an id", func(t *testing.T) {
		if _, err := ststoken.Parse(whole(good), "", hosts(t), noon); err == nil || !strings.Contains(err.Error(), ststoken.RuleCluster) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no hosts at all", func(t *testing.T) {
		if _, err := ststoken.Parse(whole(good), cluster, ststoken.Hosts{}, noon); err == nil || !strings.Contains(err.Error(), ststoken.RuleHost) {
			t.Errorf("got %v", err)
		}
	})
}

func escape(s string) string {
	return strings.NewReplacer("/", "%2F", "+", "%2B", "=", "%3D").Replace(s)
}

func TestATokenStaysOutOfLogs(t *testing.T) {
	tok, err := ststoken.Parse(ststoken.Encode(wish{session: session}.presign(t)), cluster, hosts(t), noon)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "token", tok, "signed", tok.Signed)
	raw, err := json.Marshal([]any{tok, &tok, tok.Signed})
	if err != nil {
		t.Fatal(err)
	}
	all := out.String() + string(raw) + fmt.Sprintf("%v %+v %#v %s %x %d %v", tok, tok, tok, tok, tok, tok, []any{tok.Signed, &tok})
	for _, secret := range []string{"IQoJ", "Signature", "Query", "X-Amz"} {
		if strings.Contains(all, secret) {
			t.Errorf("it shows %s: %s", secret, all)
		}
	}
	if !strings.Contains(all, keyID) {
		t.Errorf("it does not show the key's id: %s", all)
	}
}

// TestATokenOfAWSIAMAuthenticator has one that its version 0.6.13 made for region local-1: good for 0 seconds, by its
// own account.
func TestATokenOfAWSIAMAuthenticator(t *testing.T) {
	raw := ststoken.Encode("https://sts.local-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&" +
		"X-Amz-Credential=AKIDEXAMPLEAAAAAAAAA%2F20261121%2Flocal-1%2Fsts%2Faws4_request&X-Amz-Date=20261121T151649Z&X-Amz-Expires=0&" +
		"X-Amz-Security-Token=a%2F%2Bb%3D%3D&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&" +
		"X-Amz-Signature=05858398c881383c5ef0b96ba5b2a3bfd204b8a904eddae8b50207b3e26b6b13")
	tok, err := ststoken.Parse(raw, cluster, hosts(t), time.Date(2026, 11, 21, 15, 20, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if err := tok.Verify(sigv4.Derive(secret, tok.Signed.Scope), cluster); err != nil || tok.Signed.SessionToken != "a/+b==" {
		t.Errorf("%v, session token %q", err, tok.Signed.SessionToken)
	}
}
