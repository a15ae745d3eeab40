// SPDX-License-Identifier: Apache-2.0

package sigv4_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/sigv4"
)

// TestDerive has the example of the IAM User Guide, "Create a signed AWS API request".
func TestDerive(t *testing.T) {
	key := sigv4.Derive(exampleSecret, sigv4.Scope{Date: "20120215", Region: "us-east-1", Service: "iam"})
	if got, want := hex.EncodeToString(key[:]), "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"; got != want {
		t.Errorf("derived %s, want %s", got, want)
	}
	all := map[sigv4.Key]bool{key: true}
	for _, s := range []sigv4.Scope{{"20120216", "us-east-1", "iam"}, {"20120215", "us-east-2", "iam"}, {"20120215", "us-east-1", "sts"}} {
		all[sigv4.Derive(exampleSecret, s)] = true
	}
	if len(all) != 4 {
		t.Error("the key does not depend on all of the scope")
	}
}

func TestSecretsStayHidden(t *testing.T) {
	s, err := sigv4.ReadHeader(request(t, vectorNamed(t, "get-vanilla-with-session-token").Header, false))
	if err != nil {
		t.Fatal(err)
	}
	key := sigv4.Derive(exampleSecret, s.Scope)
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", key, "signed", s)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", key, "signed", s, "both", []any{key, s})
	raw, err := json.Marshal([]any{key, &key, s, map[string]any{"s": &s}})
	if err != nil {
		t.Fatal(err)
	}
	all := out.String() + string(raw) + key.String() + s.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
		all += fmt.Sprintf(verb+verb+verb, key, s, []any{&key, &s})
	}
	for _, secret := range []string{hex.EncodeToString(key[:4]), strings.ToUpper(hex.EncodeToString(key[:4])), fmt.Sprint(key[0], " ", key[1]), s.SessionToken[:8], "07ec1639"} {
		if strings.Contains(all, secret) {
			t.Errorf("it shows %q: %s", secret, all)
		}
	}
	if !strings.Contains(all, "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request") {
		t.Errorf("it does not show the credential: %s", all)
	}
}

func vectorNamed(t testing.TB, name string) vector {
	t.Helper()
	for _, v := range vectors(t) {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no vector %s", name)
	return vector{}
}

func TestHeaderSignaturesRefused(t *testing.T) {
	raw := vectorNamed(t, "get-vanilla-with-session-token").Header
	const bad = sigv4.CodeIncomplete
	auth := func(old, replaced string) func(*sigv4.Request) {
		return func(r *sigv4.Request) {
			r.Header["Authorization"] = []string{strings.Replace(r.Header["Authorization"][0], old, replaced, 1)}
		}
	}
	header := func(name string, values ...string) func(*sigv4.Request) {
		return func(r *sigv4.Request) { r.Header[name] = values }
	}
	long := strings.Repeat("a;", 64)
	for _, c := range []struct {
		name             string
		change           func(*sigv4.Request)
		code, rule, says string
	}{
		{"no Authorization header", header("Authorization"), sigv4.CodeMissing, sigv4.RuleMissing, "sign the request"},
		{"two Authorization headers", header("Authorization", "a", "b"), bad, sigv4.RuleOnce, "saw 2 Authorization headers; send one"},
		{"two in two spellings", header("AUTHORIZATION", "a"), bad, sigv4.RuleOnce, "saw 2"},
		{"an empty one", header("Authorization", ""), bad, sigv4.RuleAuthorization, "send AWS4-HMAC-SHA256 Credential="},
		{"a bearer token", header("Authorization", "Bearer abc"), bad, sigv4.RuleAuthorization, ""},
		{"no credential", auth("Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ", ""), bad, sigv4.RuleCredential, ""},
		{"two credentials", auth("Credential=", "Credential=x, Credential="), bad, sigv4.RuleAuthorization, "there twice"},
		{"an unknown field", auth("Credential=", "X=y, Credential="), bad, sigv4.RuleAuthorization, "unknown"},
		{"a field in lower case", auth("Credential=", "credential="), bad, sigv4.RuleAuthorization, "unknown"},
		{"a comma at the end", auth("Signature=", "Signature=,"), bad, sigv4.RuleAuthorization, "empty"},
		{"another algorithm", auth("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1"), bad, sigv4.RuleAlgorithm, `saw "AWS4-HMAC-SHA1"`},
		{"no algorithm", auth("AWS4-HMAC-SHA256 ", ""), bad, sigv4.RuleAlgorithm, ""},
		{"a key id with a dot", auth("AKIDEXAMPLE", "AKID.EXAMPLE"), bad, sigv4.RuleCredential, ""},
		{"a key id that is too long", auth("AKIDEXAMPLE", strings.Repeat("A", 129)), bad, sigv4.RuleCredential, ""},
		{"no key id", auth("AKIDEXAMPLE", ""), bad, sigv4.RuleCredential, ""},
		{"no region", auth("us-east-1", ""), bad, sigv4.RuleCredential, ""},
		{"a service in upper case", auth("/service/", "/Service/"), bad, sigv4.RuleCredential, ""},
		{"another end", auth("aws4_request", "aws4"), bad, sigv4.RuleCredential, ""},
		{"a scope of another day", auth("20150830", "20150831"), sigv4.CodeMismatch, sigv4.RuleCredential, `saw "20150831" for a request of 20150830T123600Z`},
		{"no signed headers", auth("SignedHeaders=host;x-amz-date;x-amz-security-token, ", ""), bad, sigv4.RuleSignedHeaders, ""},
		{"signed headers without host", auth("host;", ""), bad, sigv4.RuleSignedHeaders, "host among them"},
		{"signed headers without date", auth("host;x-amz-date", "host"), bad, sigv4.RuleSignedHeaders, "x-amz-date"},
		{"signed headers without the token", auth(";x-amz-security-token", ""), sigv4.CodeMismatch, sigv4.RuleSignedHeaders, "X-Amz-Security-Token"},
		{"signed headers out of order", auth("host;x-amz-date", "x-amz-date;host"), bad, sigv4.RuleSignedHeaders, "sorted"},
		{"a signed header twice", auth("host;", "host;host;"), bad, sigv4.RuleSignedHeaders, "once"},
		{"a signed header in upper case", auth("host;", "Host;"), bad, sigv4.RuleSignedHeaders, "lower case"},
		{"an empty signed header", auth("host;", ";host;"), bad, sigv4.RuleSignedHeaders, ""},
		{"too many signed headers", auth("host;", long), bad, sigv4.RuleSignedHeaders, ""},
		{"a signature in upper case", auth("07ec", "07EC"), bad, sigv4.RuleSignature, "64 hex digits in lower case"},
		{"a signature too short", auth("07ec", "07e"), bad, sigv4.RuleSignature, ""},
		{"a signature too long", auth("07ec", "0707ec"), bad, sigv4.RuleSignature, ""},
		{"no signature", auth(", Signature=07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8", ""), bad, sigv4.RuleSignature, ""},
		{"no date", header("X-Amz-Date"), bad, sigv4.RuleDate, "0 X-Amz-Date headers"},
		{"two dates", header("x-amz-date", "20150830T123600Z"), bad, sigv4.RuleDate, "2 X-Amz-Date headers"},
		{"a date with a fraction", header("X-Amz-Date", "20150830T123600.0Z"), bad, sigv4.RuleDate, ""},
		{"a date in another form", header("X-Amz-Date", "2015-08-30T12:36Z"), bad, sigv4.RuleDate, ""},
		{"a 25th hour", header("X-Amz-Date", "20150830T253600Z"), bad, sigv4.RuleDate, ""},
		{"two tokens", header("X-Amz-Security-Token", "a", "b"), bad, sigv4.RuleToken, ""},
		{"an empty token", header("X-Amz-Security-Token", ""), bad, sigv4.RuleToken, ""},
		{"a token with a space", header("X-Amz-Security-Token", "a b"), bad, sigv4.RuleToken, ""},
		{"a token too long", header("X-Amz-Security-Token", strings.Repeat("a", 16385)), bad, sigv4.RuleToken, ""},
		{"a header of AWS that is not signed", header("X-Amz-Target", "x"), sigv4.CodeMismatch, sigv4.RuleSignedHeaders, `saw header "X-Amz-Target"`},
		{"a signature in the query, too", func(r *sigv4.Request) { r.RawQuery = "X-Amz-Signature=0" }, bad, sigv4.RuleOnce, ""},
		{"a credential in the query in lower case", func(r *sigv4.Request) { r.RawQuery = "x-amz-credential=0" }, bad, sigv4.RuleOnce, ""},
		{"a plus in the query", func(r *sigv4.Request) { r.RawQuery = "a=b+c" }, bad, sigv4.RuleQuery, "send a space as %20"},
		{"a semicolon in the query", func(r *sigv4.Request) { r.RawQuery = "a=b;c=d" }, bad, sigv4.RuleQuery, "%3B"},
		{"a percent sign alone", func(r *sigv4.Request) { r.RawQuery = "a%=b" }, bad, sigv4.RuleQuery, `parameter "a%"`},
		{"a control character in the query", func(r *sigv4.Request) { r.RawQuery = "a=\n" }, bad, sigv4.RuleQuery, ""},
		{"a parameter without name", func(r *sigv4.Request) { r.RawQuery = "a=b&&c=d" }, bad, sigv4.RuleQuery, "give every parameter a name"},
		{"a value without name", func(r *sigv4.Request) { r.RawQuery = "=b" }, bad, sigv4.RuleQuery, "name"},
		{"a query too long", func(r *sigv4.Request) { r.RawQuery = strings.Repeat("a", 16385) }, bad, sigv4.RuleQuery, "too long"},
		{"too many parameters", func(r *sigv4.Request) { r.RawQuery = strings.Repeat("a&", 256) + "a" }, bad, sigv4.RuleQuery, "256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(t, raw, false)
			if _, err := sigv4.ReadHeader(r); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			c.change(&r)
			s, err := sigv4.ReadHeader(r)
			wantRefusal(t, err, c.code, c.rule, c.says)
			if s.AccessKeyID != "" {
				t.Errorf("it is refused and yet %v", s)
			}
		})
	}
}

func TestPresignedRefused(t *testing.T) {
	good := request(t, vectorNamed(t, "get-vanilla-with-session-token").Query, false)
	const bad = sigv4.CodeIncomplete
	for _, c := range []struct{ name, old, replaced, code, rule, says string }{
		{"no query", good.RawQuery, "", sigv4.CodeMissing, sigv4.RuleMissing, "presign the request"},
		{"another query", good.RawQuery, "Action=x", sigv4.CodeMissing, sigv4.RuleMissing, ""},
		{"a parameter twice", "X-Amz-Date=", "X-Amz-Date=20150830T123600Z&X-Amz-Date=", bad, sigv4.RuleQuery, "X-Amz-Date twice"},
		{"a parameter twice in two spellings", "X-Amz-Date=", "x-amz-date=20150830T123600Z&X-Amz-Date=", bad, sigv4.RuleQuery, `saw parameter "x-amz-date"`},
		{"a prefix in upper case", "X-Amz-Credential=", "X-AMZ-Credential=", bad, sigv4.RuleQuery, ""},
		{"an empty value", "X-Amz-Expires=3600", "X-Amz-Expires=", bad, sigv4.RuleQuery, "without a value"},
		{"no algorithm", "X-Amz-Algorithm=AWS4-HMAC-SHA256&", "", bad, sigv4.RuleAlgorithm, ""},
		{"no signature", "&X-Amz-Signature=", "&X=", bad, sigv4.RuleSignature, ""},
		{"no date", "&X-Amz-Date=", "&X=", bad, sigv4.RuleDate, ""},
		{"no expiry", "&X-Amz-Expires=3600", "", bad, sigv4.RuleExpires, ""},
		{"an expiry of more than a week", "Expires=3600", "Expires=604801", bad, sigv4.RuleExpires, "from 0 to 604800"},
		{"an expiry that overflows", "Expires=3600", "Expires=99999999999999999999", bad, sigv4.RuleExpires, ""},
		{"an expiry with a sign", "Expires=3600", "Expires=%2B3600", bad, sigv4.RuleExpires, ""},
		{"an expiry with a zero in front", "Expires=3600", "Expires=03600", bad, sigv4.RuleExpires, ""},
		{"signed headers without host", "SignedHeaders=host", "SignedHeaders=accept", bad, sigv4.RuleSignedHeaders, ""},
		{"a token with a line break", "Security-Token=6e", "Security-Token=6%0Ae", bad, sigv4.RuleToken, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := good
			if r.RawQuery = strings.Replace(r.RawQuery, c.old, c.replaced, 1); r.RawQuery == good.RawQuery {
				t.Fatal("it changes nothing")
			}
			_, err := sigv4.ReadPresigned(r)
			wantRefusal(t, err, c.code, c.rule, c.says)
		})
	}
	both := good
	both.Header = map[string][]string{"authorization": {"x"}}
	_, err := sigv4.ReadPresigned(both)
	wantRefusal(t, err, bad, sigv4.RuleOnce, "send one of the two")
	both.Header = map[string][]string{"X-Amz-Security-Token": {"x"}}
	_, err = sigv4.ReadPresigned(both)
	wantRefusal(t, err, sigv4.CodeMismatch, sigv4.RuleSignedHeaders, "not signed")
}

func TestRequestsThatCannotBeVerified(t *testing.T) {
	v := vectorNamed(t, "get-header-value-trim")
	key := sigv4.Derive(exampleSecret, sigv4.Scope{Date: "20150830", Region: "us-east-1", Service: "service"})
	s, err := sigv4.ReadHeader(request(t, v.Header, false))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name             string
		change           func(*sigv4.Request)
		code, rule, says string
	}{
		{"a method in lower case", func(r *sigv4.Request) { r.Method = "get" }, sigv4.CodeIncomplete, sigv4.RuleRequest, "method"},
		{"a method with a line break", func(r *sigv4.Request) { r.Method = "GET\n/" }, sigv4.CodeIncomplete, sigv4.RuleRequest, "method"},
		{"no host", func(r *sigv4.Request) { r.Host = "" }, sigv4.CodeIncomplete, sigv4.RuleRequest, "host"},
		{"a host with a line break", func(r *sigv4.Request) { r.Host += "\nx" }, sigv4.CodeIncomplete, sigv4.RuleRequest, "host"},
		{"a host in upper case", func(r *sigv4.Request) { r.Host = strings.ToUpper(r.Host) }, sigv4.CodeMismatch, sigv4.RuleMismatch, ""},
		{"no path but a star", func(r *sigv4.Request) { r.Path = "*" }, sigv4.CodeIncomplete, sigv4.RuleRequest, "path"},
		{"no hash", func(r *sigv4.Request) { r.PayloadHash = "" }, sigv4.CodeIncomplete, sigv4.RuleRequest, "body"},
		{"a body that is not signed", func(r *sigv4.Request) { r.PayloadHash = "UNSIGNED-PAYLOAD" }, sigv4.CodeIncomplete, sigv4.RuleRequest, "body"},
		{"another body", func(r *sigv4.Request) { r.PayloadHash = strings.Repeat("0", 64) }, sigv4.CodeMismatch, sigv4.RuleMismatch, "canonical request whose SHA-256 is"},
		{"a header that is missing", func(r *sigv4.Request) { delete(r.Header, "My-Header1") }, sigv4.CodeMismatch, sigv4.RuleSignedHeaders, `"my-header1"`},
		{"a header in two spellings", func(r *sigv4.Request) { r.Header["my-header1"] = []string{"value1"} }, sigv4.CodeMismatch, sigv4.RuleSignedHeaders, "two spellings"},
		{"a header with a line break", func(r *sigv4.Request) { r.Header["My-Header1"] = []string{"value1\nmy-header2:x"} }, sigv4.CodeIncomplete, sigv4.RuleRequest, "control character"},
		{"a header with a tab", func(r *sigv4.Request) { r.Header["My-Header1"] = []string{"\tvalue1"} }, sigv4.CodeIncomplete, sigv4.RuleRequest, "control character"},
		{"a plus in the query", func(r *sigv4.Request) { r.RawQuery = "a=+" }, sigv4.CodeIncomplete, sigv4.RuleQuery, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(t, v.Header, false)
			c.change(&r)
			wantRefusal(t, s.Verify(key, r), c.code, c.rule, c.says)
		})
	}
	r := request(t, v.Header, false)
	wantRefusal(t, sigv4.Signed{}.Verify(key, r), sigv4.CodeIncomplete, sigv4.RuleMissing, "read the signature first")
	r.Header["My-Header1"], r.Header["mY-hEADER2"] = []string{"  value1 "}, []string{` "a  b     c"  `}
	delete(r.Header, "My-Header2")
	if r.Path = ""; s.Verify(key, r) != nil {
		t.Errorf("spaces, the case of names or an empty path make a difference: %v", s.Verify(key, r))
	}
	r.Header["My-Header1"] = []string{"va lue1"}
	wantRefusal(t, s.Verify(key, r), sigv4.CodeMismatch, sigv4.RuleMismatch, "")
}

func TestCurrent(t *testing.T) {
	const skew = 15 * time.Minute
	for _, c := range []struct {
		name    string
		expires time.Duration
		after   time.Duration
		rule    string // "" if current
	}{
		{name: "at once"},
		{name: "after the skew", after: skew},
		{name: "a moment later", after: skew + time.Nanosecond, rule: sigv4.RuleExpired},
		{name: "before the skew", after: -skew},
		{name: "a moment earlier", after: -skew - time.Nanosecond, rule: sigv4.RuleEarly},
		{name: "presigned for an hour, after it", expires: time.Hour, after: time.Hour},
		{name: "presigned for an hour, a moment later", expires: time.Hour, after: time.Hour + time.Nanosecond, rule: sigv4.RuleExpired},
		{name: "presigned for an hour, and before", expires: time.Hour, after: -time.Hour, rule: sigv4.RuleEarly},
		{name: "presigned for a minute, which is as at STS", expires: time.Minute, after: skew},
		{name: "presigned for a minute, a moment later", expires: time.Minute, after: skew + time.Nanosecond, rule: sigv4.RuleExpired},
		{name: "beyond all durations", after: 1<<63 - 1, rule: sigv4.RuleExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sigv4.Signed{SignedAt: vectorDate, Expires: c.expires, Presigned: c.expires > 0}
			err := s.Current(vectorDate.Add(c.after), skew)
			if c.rule != "" {
				wantRefusal(t, err, sigv4.CodeMismatch, c.rule, "saw signed at 20150830T123600Z, and it is ")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	if err := (sigv4.Signed{}).Current(vectorDate, skew); err == nil {
		t.Error("what was never signed is current")
	}
}
