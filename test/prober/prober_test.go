// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// seen is what a prober reports of two doors that has asked some hundred times, once something was done to the server.
func (s *server) seen(t *testing.T, do func()) Report {
	t.Helper()
	at := s.Listener.Addr().String()
	p, err := Start(t.Context(), Config{
		Doors: []Door{{Name: "front", Address: at}, {Name: "private", Address: "example.com:443", Dial: always(at)}},
		TLS:   s.Client().Transport.(*http.Transport).TLSClientConfig, Every: 200 * time.Millisecond, Watches: 8, Namespace: "probed", //nolint:forcetypeassert // httptest's
		More: []Call{{Name: "logs", Method: http.MethodGet, Path: "/logs?tail=1", Says: "metadata"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, p, func(r Report) bool { return r.Asked >= 60 })
	before := p.Asked()
	do()
	wait(t, p, func(r Report) bool { return r.Asked >= before+120 && (s.left.Load() == 0 || r.Resumed == r.Watches) })
	return p.Stop()
}

// always dials one address.
func always(at string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, at)
	}
}

func wait(t *testing.T, p *Prober, until func(Report) bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for !until(p.Report()) {
		select {
		case <-late:
			t.Fatal("after 20 s: ", p.Report())
		case <-time.After(time.Millisecond):
		}
	}
}

func TestProber(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do    func(*server)
		fails string // a part of the failures; "" if there is none
	}{
		"nothing happens":           {func(*server) {}, ""},
		"connections are cut":       {func(s *server) { s.CloseClientConnections() }, "cut: "},
		"an error of the server":    {func(s *server) { s.once.Store(http.StatusServiceUnavailable) }, "Service Unavailable"},
		"too many requests, once":   {func(s *server) { s.once.Store(http.StatusTooManyRequests) }, ""},
		"too many requests, always": {func(s *server) { s.code.Store(http.StatusTooManyRequests) }, "Too Many Requests"},
		"the server leaves":         {func(s *server) { s.leave() }, ""},
		"a number comes twice":      {func(s *server) { s.tellTwice() }, " comes after "},
		"a number is missing":       {func(s *server) { s.silent.Store(true); <-time.After(500 * time.Millisecond); s.silent.Store(false) }, "watch "},
		"numbers are missing":       {func(s *server) { s.silent.Store(true) }, "is the last that it told of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			got := s.seen(t, func() { tc.do(s) })
			if got.Asked < 180 || got.Events < 100 || len(got.Rows) != 13 || got.Watches != 8 {
				t.Errorf("it asked too little: %s", got)
			}
			all := strings.Join(got.Failures, "\n")
			if tc.fails == "" && got.Failed != 0 || !strings.Contains(all, tc.fails) || tc.fails != "" && got.Failed == 0 {
				t.Errorf("want failures with %q: %s", tc.fails, got)
			}
			if strings.Contains(name, "leaves") == (got.Resumed == 0) {
				t.Errorf("watches were resumed %d times", got.Resumed)
			}
			if strings.HasPrefix(name, "too many") == (got.Repeated == 0) && !strings.Contains(name, "leaves") {
				t.Errorf("%d requests were repeated", got.Repeated)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	at := s.Listener.Addr().String()
	s.Close()
	if _, err := Start(t.Context(), Config{Doors: []Door{{Address: at}}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Every: time.Second}); err == nil {
		t.Error("nobody answers, and it started")
	}
}
