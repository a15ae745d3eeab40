// SPDX-License-Identifier: Apache-2.0

package sigv4_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/sigv4"
)

// FuzzRead asks of every request that it does no harm, that nothing verifies but what was signed, and that what can be
// read is not read in another way once its query is in another order.
func FuzzRead(f *testing.F) {
	for _, v := range vectors(f) {
		h, q := request(f, v.Header, false), request(f, v.Query, false)
		f.Add(h.Method, h.Host, h.Path, h.RawQuery, h.Header["Authorization"][0], "X-Amz-Date", "20150830T123600Z")
		f.Add(q.Method, q.Host, q.Path, q.RawQuery, "", "My-Header1", "value1  value2")
	}
	key := sigv4.Derive("fuzz", sigv4.Scope{Date: "20150830", Region: "us-east-1", Service: "service"})
	f.Fuzz(func(t *testing.T, method, host, path, query, authorization, name, value string) {
		r := sigv4.Request{Method: method, Host: host, Path: path, RawQuery: query, PayloadHash: sigv4.EmptyPayload, Header: map[string][]string{name: {value}}}
		read := sigv4.ReadPresigned
		if authorization != "" {
			r.Header["Authorization"] = []string{authorization}
			r.Header["X-Amz-Date"] = []string{"20150830T123600Z"}
			read = sigv4.ReadHeader
		}
		s, err := read(r)
		if err != nil {
			if _, ok := err.(*sigv4.Refusal); !ok { //nolint:errorlint // the contract is the type itself
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if s.SignedAt.Format("20060102") != s.Date || s.AccessKeyID == "" || len(s.Headers) == 0 || s.Presigned != (authorization == "") {
			t.Fatalf("read %v", s)
		}
		err = s.Verify(key, r)
		if err == nil {
			t.Fatal("it verifies with a key that signed nothing")
		}
		parts := strings.Split(query, "&")
		for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
			parts[i], parts[j] = parts[j], parts[i]
		}
		r.RawQuery = strings.Join(parts, "&")
		again, other := read(r)
		if other != nil {
			t.Fatalf("backwards it is refused: %v", other)
		}
		// The refusal has the hash of the canonical request.
		if other = again.Verify(key, r); other == nil || other.Error() != err.Error() {
			t.Fatalf("%v\nand backwards %v", err, other)
		}
	})
}

func BenchmarkReadPresignedAndVerify(b *testing.B) {
	benchmark(b, sigv4.ReadPresigned, vectorNamed(b, "get-vanilla-with-session-token").Query)
}

func BenchmarkReadHeaderAndVerify(b *testing.B) {
	benchmark(b, sigv4.ReadHeader, vectorNamed(b, "get-vanilla-with-session-token").Header)
}

func benchmark(b *testing.B, read func(sigv4.Request) (sigv4.Signed, error), raw string) {
	b.Helper()
	r := request(b, raw, false)
	key := sigv4.Derive(exampleSecret, sigv4.Scope{Date: "20150830", Region: "us-east-1", Service: "service"})
	b.ReportAllocs()
	for b.Loop() {
		s, err := read(r)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Verify(key, r); err != nil {
			b.Fatal(err)
		}
	}
}
