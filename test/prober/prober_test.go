// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server answers as an API server does: it has one object with a number, and tells who watches of each.
type server struct {
	*httptest.Server
	code    atomic.Int32 // of the next answers
	once    atomic.Int32 // of the next answer alone
	numbers chan int
	leaves  chan struct{} // a watch ends
	left    atomic.Int32  // how often it has left; connections that are older are told that they end
}

// sinceLeft is the key of a connection's context for how often the server had left before.
type sinceLeft struct{}

// leave has the server say on its connections that they end, as one does that is about to go. Later ones are those of
// the server that takes its place.
func (s *server) leave() {
	s.left.Add(1)
	s.leaves <- struct{}{}
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{numbers: make(chan int, 1000), leaves: make(chan struct{})}
	s.code.Store(http.StatusOK)
	s.numbers <- 0
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			for {
				select {
				case <-r.Context().Done():
					return
				case <-s.leaves:
					return
				case n := <-s.numbers:
					_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":{"number":%d}}`, n)
					w.(http.Flusher).Flush() //nolint:forcetypeassert // net/http's
				}
			}
		}
		code := int(s.code.Load())
		if once := s.once.Swap(0); once != 0 {
			code = int(once)
		}
		if r.Method == http.MethodPut && code == http.StatusOK {
			var object struct{ Number int }
			_ = json.NewDecoder(r.Body).Decode(&object)
			s.numbers <- object.Number
		}
		if r.Context().Value(sinceLeft{}) != s.left.Load() {
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "{}")
	}))
	s.EnableHTTP2 = true
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, sinceLeft{}, s.left.Load())
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// seen is what a prober reports that has asked a hundred times, once something was done to the server.
func (s *server) seen(t *testing.T, do func()) Report {
	t.Helper()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), Config{
		URL: at, TLS: s.Client().Transport.(*http.Transport).TLSClientConfig, Every: 20 * time.Millisecond, Object: "/objects/one", Collection: "/objects", //nolint:forcetypeassert // httptest's
		Body: func(number int) []byte { return fmt.Appendf(nil, `{"number":%d}`, number) },
		Number: func(raw json.RawMessage) (int, error) {
			var object struct{ Number int }
			err := json.Unmarshal(raw, &object)
			return object.Number, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, p, func(r Report) bool { return r.Asked >= 50 })
	before := p.Report().Asked
	do()
	wait(t, p, func(r Report) bool { return r.Asked >= before+100 && (s.left.Load() == 0 || r.Resumed > 0) })
	return p.Stop()
}

func wait(t *testing.T, p *Prober, until func(Report) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !until(p.Report()) {
		select {
		case <-ctx.Done():
			t.Fatalf("%+v after 20 s", p.Report())
		case <-tick.C:
		}
	}
}

func TestProber(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do    func(*server)
		fails string // a part of the first failure; "" if there is none
	}{
		"nothing happens":           {func(*server) {}, ""},
		"connections are cut":       {func(s *server) { s.CloseClientConnections() }, "connection"},
		"an error of the server":    {func(s *server) { s.once.Store(http.StatusServiceUnavailable) }, "Service Unavailable"},
		"too many requests, once":   {func(s *server) { s.once.Store(http.StatusTooManyRequests) }, ""},
		"too many requests, always": {func(s *server) { s.code.Store(http.StatusTooManyRequests) }, "Too Many Requests"},
		"the server leaves":         {func(s *server) { s.leave() }, ""},
		"a number comes twice":      {func(s *server) { s.numbers <- 7; s.numbers <- 7 }, "the watch: 7 comes after"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			got := s.seen(t, func() { tc.do(s) })
			if got.Asked < 150 || got.Watched < 2 {
				t.Errorf("it asked too little: %+v", got)
			}
			all := strings.Join(got.Failures, "\n")
			if tc.fails == "" && got.Failed != 0 || !strings.Contains(all, tc.fails) || tc.fails != "" && got.Failed == 0 {
				t.Errorf("%d failures, want %q:\n%s", got.Failed, tc.fails, all)
			}
			if strings.Contains(name, "leaves") == (got.Resumed == 0) {
				t.Errorf("the watch was resumed %d times", got.Resumed)
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
	at, _ := url.Parse(s.URL)
	s.Close()
	if _, err := Start(t.Context(), Config{URL: at, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Every: time.Second}); err == nil {
		t.Error("nobody answers, and it started")
	}
}
