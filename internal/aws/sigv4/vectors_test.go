// SPDX-License-Identifier: Apache-2.0

package sigv4_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/textproto"
	"os"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/sigv4"
)

const (
	exampleID     = "AKIDEXAMPLE"
	exampleSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

var vectorDate = time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)

// vector is one request of AWS's test suite, signed in the two ways, see testdata/README.md.
type vector struct {
	Name, Token, Header, Query string
	Normalize, HashBody        bool
}

func vectors(t testing.TB) []vector {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 38 {
		t.Fatalf("there are %d vectors", len(all))
	}
	return all
}

// request reads a request as it is on the wire, without looking at what it says: some of them net/http would not let
// through.
func request(t testing.TB, raw string, hashBody bool) sigv4.Request {
	t.Helper()
	head, body, _ := strings.Cut(raw, "\n\n")
	line, rest, _ := strings.Cut(head, "\n")
	method, target, _ := strings.Cut(strings.TrimSuffix(line, " HTTP/1.1"), " ")
	r := sigv4.Request{Method: method, Header: map[string][]string{}, PayloadHash: sigv4.EmptyPayload}
	r.Path, r.RawQuery, _ = strings.Cut(target, "?")
	if hashBody {
		sum := sha256.Sum256([]byte(body))
		r.PayloadHash = hex.EncodeToString(sum[:])
	}
	key := ""
	for line := range strings.SplitSeq(rest, "\n") {
		if values := r.Header[key]; strings.HasPrefix(line, " ") {
			values[len(values)-1] += " " + strings.TrimSpace(line) // as net/textproto unfolds
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("no header: %q", line)
		}
		key = textproto.CanonicalMIMEHeaderKey(name)
		r.Header[key] = append(r.Header[key], strings.TrimSpace(value))
	}
	r.Host = r.Header["Host"][0]
	delete(r.Header, "Host")
	return r
}

func TestVectorsOfAWS(t *testing.T) {
	key := sigv4.Derive(exampleSecret, sigv4.Scope{Date: "20150830", Region: "us-east-1", Service: "service"})
	verified := 0
	for _, v := range vectors(t) {
		// Paths that are not normal are signed as they are for S3 only, and a session token that is not signed is not
		// accepted here.
		s3 := !v.Normalize && v.Name != "get-space-unnormalized"
		for way, raw := range map[string]string{"header": v.Header, "query": v.Query} {
			t.Run(v.Name+" "+way, func(t *testing.T) {
				r := request(t, raw, v.HashBody)
				read := sigv4.ReadHeader
				if way == "query" {
					read = sigv4.ReadPresigned
				}
				s, err := read(r)
				if v.Name == "post-sts-header-after" && way == "header" {
					wantRefusal(t, err, sigv4.CodeMismatch, sigv4.RuleSignedHeaders, `saw header "X-Amz-Security-Token" that is not signed`)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case s.AccessKeyID != exampleID, s.Region != "us-east-1", s.Service != "service", s.Date != "20150830", !s.SignedAt.Equal(vectorDate):
					t.Errorf("read %+v at %s", s.Credential, s.SignedAt)
				case s.SessionToken != v.Token:
					t.Errorf("the session token is %q, want %q", s.SessionToken, v.Token)
				case s.Presigned != (way == "query"), s.Presigned && s.Expires != time.Hour, !s.Presigned && s.Expires != 0:
					t.Errorf("presigned %t for %s", s.Presigned, s.Expires)
				}
				err = s.Verify(key, r)
				if s3 || v.Name == "post-sts-header-after" {
					wantRefusal(t, err, sigv4.CodeMismatch, sigv4.RuleMismatch, "")
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				verified++
				other := sigv4.Derive(exampleSecret+"x", s.Scope)
				wantRefusal(t, s.Verify(other, r), sigv4.CodeMismatch, sigv4.RuleMismatch, "")
			})
		}
	}
	if want := 2 * (38 - 6 - 1); verified != want {
		t.Errorf("%d signatures verified, want %d", verified, want)
	}
}

func wantRefusal(t testing.TB, err error, code, rule, says string) {
	t.Helper()
	r, ok := err.(*sigv4.Refusal) //nolint:errorlint // the contract is the type itself
	if !ok {
		t.Fatalf("got %v, want a refusal %s %q", err, code, rule)
	}
	if r.Code != code || r.Rule != rule || !strings.Contains(r.Error(), says) {
		t.Errorf("got %s %q: %v\nwant %s %q that says %q", r.Code, r.Rule, r, code, rule, says)
	}
	if r.Fix == "" {
		t.Errorf("%v does not say what to do", r)
	}
}
