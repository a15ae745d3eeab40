// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/node/discovery"
)

// Nothing listens; then a server that starts refuses, lacks the signature, has that of an earlier cluster-info; then it
// works.
func TestWaitsForAServerThatComesUp(t *testing.T) {
	ca := newAuthority(t, "blue")
	f := newFake(t, ca)
	good := signed(t, kubeconfig(f.URL, ca))
	unsigned, stale := good, good
	unsigned.signatures = nil
	stale.signatures = signed(t, "before").signatures
	f.will(answer{status: 503}, answer{status: 403}, unsigned, stale, good)
	c := by(t, f, ca)
	c.Settle = time.Minute
	c.Timeout = time.Minute
	var mu sync.Mutex
	var said []string
	c.Progress = func(s string) { mu.Lock(); defer mu.Unlock(); said = append(said, s) }
	if _, err := discovery.Discover(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if len(said) != 4 || f.count() != 6 {
		t.Errorf("asked %d times, said %q", f.count(), said)
	}
}

func TestNobodyAnswers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := discovery.Config{Endpoint: address, Token: parse(t, whole), UnsafeSkipCAVerification: true, Timeout: 300 * time.Millisecond}
	said := 0
	c.Progress = func(string) { said++ }
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.Unreachable, "gave up after 300ms", "connection refused", "check the address")
	if said != 1 {
		t.Errorf("said %d times", said)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.Timeout = time.Minute
	c.Progress = func(string) { cancel() }
	if _, err = discovery.Discover(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestNoTLS(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	c := discovery.Config{Endpoint: strings.TrimPrefix(s.URL, "http://"), Token: parse(t, whole), UnsafeSkipCAVerification: true, Timeout: time.Second}
	_, err := discovery.Discover(t.Context(), c)
	refused(t, err, discovery.BadEndpoint, "does not speak TLS")
}

// Of an answer without an end no more is read than an answer may have.
func TestAnEndlessAnswer(t *testing.T) {
	written := make(chan int, 1)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := 0
		for chunk := make([]byte, 1<<16); n < 256<<20; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				break
			}
		}
		written <- n
	}))
	defer s.Close()
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	c := discovery.Config{Endpoint: strings.TrimPrefix(s.URL, "https://"), Token: parse(t, whole), UnsafeSkipCAVerification: true}
	_, err := discovery.Discover(t.Context(), c)
	refused(t, err, discovery.Malformed, "more than 4 MiB")
	if n := <-written; n > 64<<20 { // sockets hold some
		t.Errorf("%d MiB were taken", n>>20)
	}
}

// The server may be a proxy that somebody forgot: it is named, without its password.
func TestAProxyIsNamed(t *testing.T) {
	proxy := httptest.NewServer(http.NotFoundHandler())
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("u", half)
	c := discovery.Config{Endpoint: "10.0.0.1:6443", Token: parse(t, whole), UnsafeSkipCAVerification: true, Timeout: 100 * time.Millisecond, Proxy: http.ProxyURL(at)}
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.Unreachable, "by the proxy http://u:xxxxx@"+at.Host, "NO_PROXY")
}

func TestASmallSkewIsMentioned(t *testing.T) {
	ca := newAuthority(t, "blue")
	f := newFake(t, ca)
	f.will(signed(t, kubeconfig(f.URL, ca)))
	c := by(t, f, ca)
	c.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
	var said []string
	c.Progress = func(s string) { said = append(said, s) }
	r, err := discovery.Discover(t.Context(), c)
	if err != nil || (r.Skew-10*time.Minute).Abs() > 2*time.Second || len(said) != 1 || !strings.Contains(fmt.Sprint(said), "ahead of the server's") {
		t.Errorf("%+v, %v, said %q", r, err, said)
	}
}

// The second connection takes no old TLS either.
func TestOldTLSIsRefused(t *testing.T) {
	ca := newAuthority(t, "blue")
	f := newFake(t, ca)
	f.Close()
	old := httptest.NewUnstartedServer(f)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10, Certificates: []tls.Certificate{f.cert}}
	old.Config.ErrorLog = f.Config.ErrorLog
	old.StartTLS()
	defer old.Close()
	c := by(t, f, ca)
	c.Endpoint, c.Timeout = strings.TrimPrefix(old.URL, "https://"), 300*time.Millisecond
	_, err := discovery.Discover(t.Context(), c)
	refused(t, err, discovery.Unreachable)
}
