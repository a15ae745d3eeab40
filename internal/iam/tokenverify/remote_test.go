// SPDX-License-Identifier: Apache-2.0

package tokenverify_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

const cluster = "demo"

func remote(t *testing.T, s *ststest.STS, change func(*tokenverify.RemoteConfig)) *tokenverify.Remote {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := tokenverify.RemoteConfig{
		ClusterID: cluster, Endpoints: s.Endpoints(), RootCAs: roots, Logger: slog.New(slog.DiscardHandler),
		Jitter: func(time.Duration) time.Duration { return 0 },
	}
	if change != nil {
		change(&c)
	}
	r, err := tokenverify.NewRemote(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func token(t testing.TB, k ststest.Key) ststoken.Token {
	t.Helper()
	now := time.Now()
	return ststest.Parsed(t, ststest.Token(t, k, cluster, now), cluster, now)
}

func mustARN(t testing.TB, s string) arn.ARN {
	t.Helper()
	a, err := arn.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSTSSaysWhoMadeAToken(t *testing.T) {
	user, session := ststest.User("alice", 1), ststest.Session("deploy", "ci@example", 2)
	s := ststest.New(t, user, session)
	r := remote(t, s, nil)
	for _, tc := range []struct {
		key  ststest.Key
		want identity.Principal
	}{
		{user, identity.Principal{
			ARN: mustARN(t, user.ARN), CanonicalARN: mustARN(t, user.ARN), Account: "111122223333", UserID: user.UserID, AccessKeyID: user.ID,
		}},
		{session, identity.Principal{
			ARN: mustARN(t, session.ARN), CanonicalARN: mustARN(t, "arn:aws:iam::111122223333:role/deploy"), Account: "111122223333",
			UserID: "AROA0000000000000002", SessionName: "ci@example", AccessKeyID: session.ID,
		}},
	} {
		parsed := token(t, tc.key)
		got, err := r.Verify(t.Context(), parsed)
		if err != nil {
			t.Fatal(err)
		}
		if grace := time.Until(got.OutageUntil); grace < 4*time.Minute || grace > 5*time.Minute {
			t.Errorf("in an outage it goes on for %s", grace)
		}
		if diff := cmp.Diff(tc.want, got.Principal); diff != "" || !got.ValidUntil.Equal(parsed.Expires) {
			t.Errorf("valid until %s, the token until %s (-want +got):\n%s", got.ValidUntil, parsed.Expires, diff)
		}
	}
}

func TestAnswersOfSTS(t *testing.T) {
	key := ststest.User("alice", 1)
	answer := func(status int, body string) func(int64, http.ResponseWriter, *http.Request) bool {
		return func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	fault := func(status int, code, message string) func(int64, http.ResponseWriter, *http.Request) bool {
		return func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
			ststest.Error(w, status, code, message)
			return true
		}
	}
	once := func(inner func(int64, http.ResponseWriter, *http.Request) bool) func(int64, http.ResponseWriter, *http.Request) bool {
		return func(call int64, w http.ResponseWriter, r *http.Request) bool { return call == 1 && inner(call, w, r) }
	}
	for _, tc := range []struct {
		name   string
		fail   func(int64, http.ResponseWriter, *http.Request) bool
		want   string // ok, refused, throttled, unavailable
		says   string
		calls  int64
		change func(*tokenverify.RemoteConfig)
	}{
		{name: "an identity in XML", fail: answer(200, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::111122223333:user/alice</Arn><UserId>AIDA1</UserId><Account>111122223333</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`), want: "ok", calls: 1},
		{name: "a wrong signature", fail: fault(403, "SignatureDoesNotMatch", "no match\n\nThe Canonical String was secret"), want: "refused", says: "sts: SignatureDoesNotMatch: sts.eu-west-1.amazonaws.com refused it: no match; make the token for this cluster's name", calls: 1},
		{name: "an error in XML", fail: answer(403, `<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredToken</Code><Message>it is expired</Message></Error></ErrorResponse>`), want: "refused", says: "ExpiredToken", calls: 1},
		{name: "a message that nobody could read", fail: fault(403, "AccessDenied", strings.Repeat("long\x00\x1b[31m ", 200)), want: "refused", says: "...", calls: 1},
		{name: "throttling twice", fail: fault(400, "Throttling", "Rate exceeded"), want: "throttled", says: "Throttling", calls: 2},
		{name: "throttling once", fail: once(fault(429, "TooManyRequestsException", "")), want: "ok", calls: 2},
		{name: "503 SlowDown", fail: fault(503, "SlowDown", ""), want: "throttled", calls: 2},
		{name: "500 once", fail: once(answer(500, "oops")), want: "ok", calls: 2},
		{name: "500 twice", fail: answer(500, "oops"), want: "unavailable", says: "status 500", calls: 2},
		{name: "a redirect", fail: func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusTemporaryRedirect)
			return true
		}, want: "unavailable", says: "sends elsewhere", calls: 1},
		{name: "a redirect that is permanent", fail: func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "/again", http.StatusPermanentRedirect)
			return true
		}, want: "unavailable", says: "sends elsewhere", calls: 1},
		{name: "a huge body", fail: answer(200, `{"GetCallerIdentityResponse":{"x":"`+strings.Repeat("x", 100<<10)+`"}}`), want: "unavailable", says: "more than 65536 bytes", calls: 1},
		{name: "what is not JSON", fail: answer(200, `{"GetCallerIdentityResponse":`), want: "unavailable", says: "not STS's", calls: 1},
		{name: "JSON of something else", fail: answer(200, `{"status":"ok"}`), want: "unavailable", says: "not STS's", calls: 1},
		{name: "a proxy's 403", fail: answer(403, `<html>Forbidden</html>`), want: "unavailable", says: "not STS's", calls: 1},
		{name: "404", fail: answer(404, ``), want: "unavailable", says: "not STS's", calls: 1},
		{name: "an account that is not the ARN's", fail: answer(200, `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"999922223333","Arn":"arn:aws:iam::111122223333:user/alice","UserId":"AIDA1"}}}`), want: "refused", says: "999922223333", calls: 1},
		{name: "an identity together with an error", fail: answer(200, `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"111122223333","Arn":"arn:aws:iam::111122223333:user/alice","UserId":"AIDA1"}},"Error":{"Code":"AccessDenied"}}`), want: "refused", calls: 1},
		{name: "a session that is not the ARN's", fail: answer(200, `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"111122223333","Arn":"arn:aws:sts::111122223333:assumed-role/r/one","UserId":"AROA1:two"}}}`), want: "refused", says: "two", calls: 1},
		{name: "a connection that breaks", fail: func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = c.Close()
			}
			return true
		}, want: "unavailable", calls: 2},
		{name: "no answer in time", fail: func(_ int64, _ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, want: "unavailable", calls: 1, change: func(c *tokenverify.RemoteConfig) { c.Timeout = 2 * time.Second }}, // a handshake comes first
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := ststest.New(t, key)
			s.Fail(tc.fail)
			parsed := token(t, key)
			r := remote(t, s, tc.change)
			r.Admit(key.ID)
			_, err := r.Verify(t.Context(), parsed)
			if got := kind(err); got != tc.want || !strings.Contains(fmt.Sprint(err), tc.says) {
				t.Errorf("%s: %v; want %s with %q", got, err, tc.want, tc.says)
			}
			if calls := s.Calls.Load(); tc.name != "a connection that breaks" && calls != tc.calls { // there Go's client tries again by itself
				t.Errorf("%d calls, want %d", calls, tc.calls)
			}
			if text := fmt.Sprint(err); len(text) > 700 || strings.ContainsAny(text, "\x00\x1b\n") || strings.Contains(text, "was secret") {
				t.Errorf("the error is not fit to be printed: %q", text)
			}
			for _, secret := range ststest.Secrets(t, parsed) {
				if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
					t.Errorf("the error holds a secret: %v", err)
				}
			}
		})
	}
}

func kind(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, tokenverify.ErrThrottled):
		return "throttled"
	}
	if _, ok := errors.AsType[*tokenverify.Refused](err); ok {
		return "refused"
	}
	if _, ok := errors.AsType[*tokenverify.Unavailable](err); ok {
		return "unavailable"
	}
	return "another error"
}

func TestATokenGoesNowhereButToItsHost(t *testing.T) {
	key := ststest.User("alice", 1)
	s := ststest.New(t, key)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // it is not asked
	var host string
	s.Fail(func(_ int64, _ http.ResponseWriter, r *http.Request) bool { host = r.Host; return false })
	if _, err := remote(t, s, nil).Verify(t.Context(), token(t, key)); err != nil || host != ststest.Host {
		t.Errorf("the host was %q: %v", host, err)
	}
	moved := token(t, key)
	moved.Host = "evil.example"
	if _, err := remote(t, s, nil).Verify(t.Context(), moved); err == nil {
		t.Error("a token was sent to another host than the one it was made for")
	}
}

func TestTheCertificateOfSTSIsVerified(t *testing.T) {
	key := ststest.User("alice", 1)
	s := ststest.New(t, key)
	_, err := remote(t, s, func(c *tokenverify.RemoteConfig) { c.RootCAs = x509.NewCertPool() }).Verify(t.Context(), token(t, key))
	if kind(err) != "unavailable" || s.Calls.Load() != 0 {
		t.Errorf("%d calls: %v", s.Calls.Load(), err)
	}
}

func TestAHostThatFailsIsLeftAloneAndIsBackAtOnce(t *testing.T) {
	key := ststest.User("alice", 1)
	s := ststest.New(t, key)
	var mu sync.Mutex
	now := time.Now()
	r := remote(t, s, func(c *tokenverify.RemoteConfig) {
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	s.Fail(func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	for range 20 {
		if _, err := r.Verify(t.Context(), token(t, key)); kind(err) != "unavailable" {
			t.Fatal(err)
		}
	}
	if calls := s.Calls.Load(); calls != 5 {
		t.Errorf("it was asked %d times while it failed; want 5", calls)
	}
	s.Fail(nil)
	if _, err := r.Verify(t.Context(), token(t, key)); kind(err) != "unavailable" || !strings.Contains(err.Error(), "502") {
		t.Errorf("while it is left alone the last failure is told: %v", err)
	}
	mu.Lock()
	now = now.Add(500 * time.Millisecond)
	mu.Unlock()
	for range 3 {
		if _, err := r.Verify(t.Context(), token(t, key)); err != nil {
			t.Errorf("it is back: %v", err)
		}
	}
}

// Everybody has an AWS account, and IAM lets its users choose a name: that is not a failure of STS.
func TestAStrangePrincipalStopsNobodyElse(t *testing.T) {
	strange, good := ststest.User("strange", 1), ststest.User("alice", 2)
	strange.ARN = "arn:aws:iam::111122223333:group/strange"
	slashes := ststest.User("slashes", 3)
	slashes.ARN = "arn:aws:iam::111122223333:user/a//b/slashes"
	s := ststest.New(t, strange, good, slashes)
	r := remote(t, s, nil)
	for range 20 {
		if _, err := r.Verify(t.Context(), token(t, strange)); kind(err) != "refused" || !strings.Contains(err.Error(), "sts: ") || !strings.Contains(err.Error(), "names nobody") {
			t.Fatalf("a principal that nobody can map: %v", err)
		}
	}
	if _, err := r.Verify(t.Context(), token(t, good)); err != nil {
		t.Errorf("others are not let in: %v", err)
	}
	if id, err := r.Verify(t.Context(), token(t, slashes)); err != nil || id.ARN.String() != slashes.ARN {
		t.Errorf("a path with two slashes: %+v: %v", id.ARN, err)
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	key := ststest.User("alice", 1)
	s := ststest.New(t, key)
	r := remote(t, s, func(c *tokenverify.RemoteConfig) { c.Endpoints = map[string]string{ststest.Host: "https://" + address} })
	_, err = r.Verify(t.Context(), token(t, key))
	if kind(err) != "unavailable" || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "X-Amz") {
		t.Error(err)
	}
}

func TestWhoKeepsSTSBusyWaitsForHimself(t *testing.T) {
	good, stranger := ststest.User("alice", 1), ststest.User("mallory", 2)
	s := ststest.New(t, good)
	var busy sync.Map
	r := remote(t, s, func(c *tokenverify.RemoteConfig) {
		c.Gate = tokenverify.GateConfig{Known: 2, Unknown: 2, PerKey: 2, Queue: 4, Wait: 100 * time.Millisecond, Busy: func(known bool) { busy.Store(known, true) }}
	})
	r.Admit(good.ID)
	hang, came := make(chan struct{}), make(chan struct{}, 100)
	s.Fail(func(_ int64, _ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.RawQuery, stranger.ID) {
			came <- struct{}{}
			<-hang
		}
		return false
	})
	defer close(hang)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	results := make(chan error, 20)
	for range 20 {
		group.Go(func() {
			_, err := r.Verify(ctx, token(t, stranger))
			results <- err
		})
	}
	<-came
	<-came
	for range 5 {
		if _, err := r.Verify(t.Context(), token(t, good)); err != nil {
			t.Errorf("a key that was good before waits for strangers: %v", err)
		}
	}
	for range 18 { // all but the two that were sent
		if err := <-results; kind(err) != "throttled" {
			t.Errorf("a stranger got %v", err)
		}
	}
	cancel()
	group.Wait()
	if _, ok := busy.Load(false); !ok {
		t.Error("nobody was told that questions were not asked")
	}
	if len(came) != 0 {
		t.Errorf("%d more questions of strangers were asked than at once may be", len(came))
	}
}
