// SPDX-License-Identifier: Apache-2.0

package sigv4_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"muster.dev/muster/internal/aws/sigv4"
)

// made is a request that the SDK signed, as a server sees it.
type made struct {
	request   sigv4.Request
	key       sigv4.Key
	presigned bool
	token     string
	at        time.Time
}

func (m made) read() (sigv4.Signed, error) {
	if m.presigned {
		return sigv4.ReadPresigned(m.request)
	}
	return sigv4.ReadHeader(m.request)
}

func word(r *rand.Rand, alphabet string, most int) string {
	runes, out := []rune(alphabet), ""
	for range 1 + r.IntN(most) {
		out += string(runes[r.IntN(len(runes))])
	}
	return out
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomRequest has the SDK sign some request. Names of parameters are of unreserved characters, and only one is there
// twice: the SDK sorts by what the parameters say and not, as the rules and AWS's vectors do, by how they are escaped.
func randomRequest(t *testing.T, r *rand.Rand) made {
	t.Helper()
	const (
		plain = "abcxyzABCXYZ0189-._~"
		wild  = plain + " %+/:;=&?#@!$'()*,[]{}|\"<>^`\\äሴ😀"
	)
	target := url.URL{Scheme: "https", Host: pick(r, "sts.eu-west-1.amazonaws.com", "127.0.0.1:4566", "[::1]:8443", "eks.example"), Path: "/"}
	for range r.IntN(4) {
		target.Path += word(r, strings.ReplaceAll(plain, ".", "")+" %+:äሴ", 8) + "/"
	}
	query := url.Values{}
	for range r.IntN(6) {
		query.Set(word(r, plain, 6), word(r, wild, 12))
	}
	if r.IntN(2) == 0 {
		query["Twice"] = []string{word(r, plain, 9), word(r, plain, 9), ""}
	}
	m := made{presigned: r.IntN(2) == 0, at: time.Unix(1.7e9+r.Int64N(1e8), 0).UTC()}
	if m.presigned {
		query.Set("X-Amz-Expires", fmt.Sprint(r.IntN(604801)))
	}
	target.RawQuery = query.Encode()
	body := ""
	method := pick(r, http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete)
	if method == http.MethodPost || method == http.MethodPut {
		body = word(r, wild, 200)
	}
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	request, err := http.NewRequest(method, target.String(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for range r.IntN(4) {
		value := word(r, strings.ReplaceAll(wild, "😀", "")+"     ", 30)
		request.Header.Add(pick(r, "X-Custom", "Content-Type", "X-Amz-Meta-A", "X-K8s-Aws-Id", "Accept"), value)
	}
	if r.IntN(2) == 0 {
		m.token = word(r, "abc/+=XYZ", 80)
	}
	credentials := aws.Credentials{AccessKeyID: "AKIA" + word(r, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 60), SecretAccessKey: word(r, wild, 40), SessionToken: m.token}
	service, region := pick(r, "sts", "iam", "eks", "ec2"), pick(r, "us-east-1", "eu-west-1", "ap-southeast-7")
	if m.presigned {
		signed, header, err := v4.NewSigner().PresignHTTP(t.Context(), credentials, request, hash, service, region, m.at)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(signed)
		if err != nil {
			t.Fatal(err)
		}
		request.URL = u
		delete(header, "Host")
		m.request.Header = header
	} else {
		if err := v4.NewSigner().SignHTTP(t.Context(), credentials, request, hash, service, region, m.at); err != nil {
			t.Fatal(err)
		}
		if _, value, ok := strings.Cut(request.Header.Get("Authorization"), "content-length;"); ok && value != "" {
			request.Header.Set("Content-Length", fmt.Sprint(request.ContentLength)) // net/http sends it so
		}
		m.request.Header = request.Header
	}
	m.request.Method, m.request.Host, m.request.Path, m.request.RawQuery = method, target.Host, request.URL.EscapedPath(), request.URL.RawQuery
	if request.URL.Opaque != "" {
		_, rest, _ := strings.Cut(strings.TrimPrefix(request.URL.Opaque, "//"), "/")
		m.request.Path = "/" + rest
	}
	m.request.PayloadHash = hash
	m.key = sigv4.Derive(credentials.SecretAccessKey, sigv4.Scope{Date: m.at.Format("20060102"), Region: region, Service: service})
	return m
}

func TestSignaturesOfTheSDKVerify(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	presigned := 0
	for i := range 800 {
		m := randomRequest(t, r)
		s, err := m.read()
		if err != nil {
			t.Fatalf("seed %d, request %d: %v\n%+v", seed, i, err, m.request)
		}
		if s.SessionToken != m.token || !s.SignedAt.Equal(m.at) || s.Presigned != m.presigned {
			t.Fatalf("seed %d, request %d: read %q at %s", seed, i, s.SessionToken, s.SignedAt)
		}
		if err := s.Verify(m.key, m.request); err != nil {
			t.Fatalf("seed %d, request %d: %v\n%+v", seed, i, err, m.request)
		}
		if m.presigned {
			presigned++
		}
		for what, change := range changes(m) {
			if s, err := change.read(); err == nil && s.Verify(m.key, change.request) == nil {
				t.Fatalf("seed %d, request %d: %s may change\n%+v\n%+v", seed, i, what, m.request, change.request)
			}
		}
	}
	if presigned < 200 || presigned > 600 {
		t.Errorf("%d of 800 were presigned", presigned)
	}
}

// changes are requests that differ from one that was signed in one thing each.
func changes(m made) map[string]made {
	out := map[string]made{}
	edit := func(what string, change func(*sigv4.Request)) {
		c := m
		c.request.Header = http.Header(m.request.Header).Clone()
		change(&c.request)
		out[what] = c
	}
	edit("the method", func(r *sigv4.Request) { r.Method += "X" })
	edit("the host", func(r *sigv4.Request) { r.Host += "0" })
	edit("the path", func(r *sigv4.Request) { r.Path += "x" })
	edit("the query", func(r *sigv4.Request) { r.RawQuery = strings.TrimPrefix(r.RawQuery+"&a=b", "&") })
	edit("the body", func(r *sigv4.Request) { r.PayloadHash = r.PayloadHash[1:] + string(r.PayloadHash[0]^1) })
	edit("an X-Amz- header", func(r *sigv4.Request) { r.Header["X-Amz-Target"] = []string{"x"} })
	for name, values := range m.request.Header {
		if !m.presigned || name != "Content-Length" {
			edit("header "+name, func(r *sigv4.Request) { r.Header[name] = append([]string{values[0] + "x"}, values[1:]...) })
			edit("no header "+name, func(r *sigv4.Request) { delete(r.Header, name) })
			edit("a second header "+name, func(r *sigv4.Request) { r.Header[name] = append(r.Header[name], "x") })
			edit("another spelling of header "+name, func(r *sigv4.Request) { r.Header[strings.ToUpper(name)] = []string{"x"} })
		}
	}
	return out
}
