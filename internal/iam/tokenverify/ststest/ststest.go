// SPDX-License-Identifier: Apache-2.0

// Package ststest has what tests of authentication need: tokens as the AWS CLI makes them, and an STS that fails on
// demand.
package ststest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/ststoken"
)

// Key is an access key and its owner.
type Key struct {
	ID, Secret, Session  string
	ARN, Account, UserID string // as GetCallerIdentity tells them
}

// User makes a key of a user.
func User(name string, n int) Key {
	return Key{
		ID: fmt.Sprintf("AKIA%016d", n), Secret: fmt.Sprintf("secret-of-%s-%d", name, n),
		ARN: "arn:aws:iam::111122223333:user/" + name, Account: "111122223333", UserID: fmt.Sprintf("AIDA%016d", n),
	}
}

// Session makes a key of a session of a role.
func Session(role, session string, n int) Key {
	return Key{
		ID: fmt.Sprintf("ASIA%016d", n), Secret: fmt.Sprintf("secret-of-%s-%d", role, n), Session: fmt.Sprintf("session-token-%d//==", n),
		ARN: "arn:aws:sts::111122223333:assumed-role/" + role + "/" + session, Account: "111122223333", UserID: fmt.Sprintf("AROA%016d:%s", n, session),
	}
}

// Host is where tokens are made for: its endpoint has to be set.
const Host = "sts.eu-west-1.amazonaws.com"

// Token makes a token for a cluster.
func Token(t testing.TB, k Key, cluster string, at time.Time) string {
	t.Helper()
	return TokenFor(t, k, cluster, Host, "eu-west-1", at)
}

// TokenFor makes a token for a host.
func TokenFor(t testing.TB, k Key, cluster, host, region string, at time.Time) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=60", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(ststoken.ClusterHeader, cluster)
	signed, _, err := v4.NewSigner().PresignHTTP(t.Context(), aws.Credentials{AccessKeyID: k.ID, SecretAccessKey: k.Secret, SessionToken: k.Session},
		r, sigv4.EmptyPayload, "sts", region, at)
	if err != nil {
		t.Fatal(err)
	}
	return ststoken.Encode(signed)
}

// Hosts are AWS's.
func Hosts(t testing.TB) ststoken.Hosts {
	t.Helper()
	h, err := ststoken.NewHosts("aws", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// STS is an STS by TLS.
type STS struct {
	*httptest.Server
	Calls atomic.Int64

	mu     sync.Mutex
	keys   map[string]Key
	before func(call int64, w http.ResponseWriter, r *http.Request) bool
}

// New starts an STS that knows keys.
func New(t testing.TB, keys ...Key) *STS {
	t.Helper()
	s := &STS{keys: map[string]Key{}}
	for _, k := range keys {
		s.keys[k.ID] = k
	}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// Endpoints send what is meant for Host here.
func (s *STS) Endpoints() map[string]string { return map[string]string{Host: s.URL} }

// Fail has something answer in its place, until it returns false.
func (s *STS) Fail(before func(call int64, w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// Remove makes a key unknown.
func (s *STS) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, id)
}

// Add makes a key known.
func (s *STS) Add(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[k.ID] = k
}

// ServeHTTP verifies the request and names its sender.
func (s *STS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := s.Calls.Add(1)
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil && before(call, w, r) {
		return
	}
	asked := sigv4.Request{Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Header: r.Header, PayloadHash: sigv4.EmptyPayload}
	signed, err := sigv4.ReadPresigned(asked)
	if err != nil {
		Error(w, http.StatusBadRequest, "IncompleteSignature", err.Error())
		return
	}
	s.mu.Lock()
	k, ok := s.keys[signed.AccessKeyID]
	s.mu.Unlock()
	switch {
	case !ok || k.Session != signed.SessionToken:
		Error(w, http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid.")
	case signed.Verify(sigv4.Derive(k.Secret, signed.Scope), asked) != nil:
		Error(w, http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":%q,"Arn":%q,"UserId":%q},"ResponseMetadata":{"RequestId":"r-1"}}}`, k.Account, k.ARN, k.UserID)
	}
}

// Error answers as STS does.
func Error(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"Error": map[string]string{"Code": code, "Message": message, "Type": "Sender"}, "RequestId": "r-1"})
}

// Parsed reads a token that a test made.
func Parsed(t testing.TB, raw, cluster string, now time.Time) ststoken.Token {
	t.Helper()
	token, err := ststoken.Parse(raw, cluster, Hosts(t), now)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Secrets are the parts of a token that must be nowhere else.
func Secrets(t testing.TB, token ststoken.Token) []string {
	t.Helper()
	values, err := url.ParseQuery(token.Query)
	if err != nil {
		t.Fatal(err)
	}
	var secrets []string
	for name, value := range values {
		if strings.HasSuffix(name, "Signature") || strings.HasSuffix(name, "Security-Token") {
			secrets = append(secrets, value...)
		}
	}
	return secrets
}
