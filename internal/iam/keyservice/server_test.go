// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/iam/caller"
)

// backend answers as it is told to.
type backend struct {
	resolve func(ctx context.Context, id string) (Maker, error)

	mu    sync.Mutex
	feeds []*listened
	about []string // clusters

	refused []Refused
	by      []string
}

// Verify takes the query for an id.
func (b *backend) Verify(ctx context.Context, cluster, _, query string) (Maker, error) {
	b.mu.Lock()
	b.about = append(b.about, cluster)
	b.mu.Unlock()
	return b.resolve(ctx, query)
}

func (b *backend) RoleCredentials(context.Context, string) (RoleCredentials, error) {
	return RoleCredentials{}, &Unknown{Code: "NoSuchEntity", Reason: "no profile"}
}

func (b *backend) Refused(_ context.Context, cluster string, r Refused) error {
	b.refused, b.by = append(b.refused, r), append(b.by, cluster)
	return nil
}

func (b *backend) Changes() Feed {
	f := &listened{ready: make(chan struct{}, 1), closed: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.feeds = append(b.feeds, f)
	return f
}

func (b *backend) tell(c Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.feeds {
		f.mu.Lock()
		f.change = c
		f.mu.Unlock()
		f.ready <- struct{}{}
	}
}

type listened struct {
	ready, closed chan struct{}
	mu            sync.Mutex
	change        Change
}

func (l *listened) Ready() <-chan struct{} { return l.ready }

func (l *listened) Take() Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change
}

func (l *listened) Close() { close(l.closed) }

func serverOf(t *testing.T, b *backend, heartbeat time.Duration) (*Server, *httptest.Server) {
	t.Helper()
	s, err := NewServer(ServerConfig{
		Backend: b, Credential: Credential(authorityOf(t).Account(t)), Clusters: isDemo, Logger: slog.New(slog.DiscardHandler), Heartbeat: heartbeat,
	})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(by(caller.Authenticator("demo", "0A1B"), s.Handler()))
	t.Cleanup(h.Close)
	return s, h
}

func isDemo(who caller.Caller) bool { return who.Cluster == "demo" && who.ID == "0A1B" }

// by has requests come from a caller whose certificate was verified.
func by(who caller.Caller, h http.Handler) http.Handler {
	name, organizations := who.Subject()
	certificate := &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: organizations}, NotAfter: time.Now().Add(48 * time.Hour)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}, VerifiedChains: [][]*x509.Certificate{{certificate}}}
		h.ServeHTTP(w, r)
	})
}

func TestWhatAServerAnswers(t *testing.T) {
	good := Maker{ARN: "arn:aws:iam::000000000000:user/a", Account: "000000000000", UserID: "AIDA", ValidUntil: time.Unix(1, 0).UTC()}
	b := &backend{resolve: func(_ context.Context, id string) (Maker, error) {
		switch id {
		case "good":
			return good, nil
		case "no":
			return Maker{}, &Unknown{Code: "ExpiredToken", Reason: "it ended"}
		}
		return Maker{}, errors.New("secret detail")
	}}
	_, h := serverOf(t, b, time.Hour)
	of, err := NewServer(ServerConfig{Backend: b, Credential: Credential(authorityOf(t).Account(t)), Clusters: isDemo, Credentials: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	metadata := httptest.NewServer(by(caller.Metadata(), of.Handler()))
	t.Cleanup(metadata.Close)
	for _, test := range []struct {
		name, path, body string
		status           int
		says             string
	}{
		{"a key", PathVerify, `{"cluster":"demo","query":"good"}`, http.StatusOK, `"userID":"AIDA"`},
		{"a no", PathVerify, `{"cluster":"demo","query":"no"}`, http.StatusNotFound, `{"code":"ExpiredToken","reason":"it ended"}`},
		{"nobody can tell", PathVerify, `{"cluster":"demo","query":"x"}`, http.StatusServiceUnavailable, ""},
		{"another cluster's", PathVerify, `{"cluster":"other","query":"good"}`, http.StatusNotFound, `"rule":"cluster"`},
		{"no cluster's", PathVerify, `{"query":"good"}`, http.StatusNotFound, `"rule":"cluster"`},
		{"a cluster's in another spelling", PathVerify, `{"cluster":"Demo","query":"good"}`, http.StatusNotFound, `"rule":"cluster"`},
		{"an unknown field", PathVerify, `{"cluster":"demo","query":"good","as":"other"}`, http.StatusBadRequest, ""},
		{"two questions", PathVerify, `{"cluster":"demo","query":"good"}{"cluster":"demo","query":"good"}`, http.StatusBadRequest, ""},
		{"no JSON", PathVerify, `{`, http.StatusBadRequest, ""},
		{"too long", PathVerify, `{"cluster":"demo","query":"` + strings.Repeat("x", MaxQuery) + `"}`, http.StatusBadRequest, ""},
		{"an instance, of who tells whose keys are", PathRoleCredentials, `{"instanceID":"i-0"}`, http.StatusNotFound, "404 page not found"},
		{"an instance", "metadata " + PathRoleCredentials, `{"instanceID":"i-0"}`, http.StatusNotFound, "NoSuchEntity"},
		{"a key, of who gives credentials", "metadata " + PathVerify, `{"cluster":"demo","query":"good"}`, http.StatusNotFound, "404 page not found"},
		{"another path", "/v1/other", `{}`, http.StatusNotFound, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := h.URL + test.path
			if path, ok := strings.CutPrefix(test.path, "metadata "); ok {
				url = metadata.URL + path
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			line, _ := bufio.NewReader(response.Body).ReadString('\n')
			if response.StatusCode != test.status || !strings.Contains(line, test.says) || strings.Contains(line, "secret detail") {
				t.Errorf("%d %s, want %d %s", response.StatusCode, line, test.status, test.says)
			}
		})
	}
}

// eventsOf follows the stream of changes, from behind the first one on.
func eventsOf(t *testing.T, h *httptest.Server) <-chan Event {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+PathChanges, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Body.Close() })
	events := make(chan Event, 8)
	go func() {
		lines := bufio.NewScanner(stream.Body)
		for lines.Scan() {
			var e Event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				events <- e
			}
		}
	}()
	if first := <-events; first.Sequence != 1 || !first.All {
		t.Errorf("%+v", first)
	}
	return events
}

// An answer from before a change leaves before its event: else a client would keep what it was told to forget.
func TestAnAnswerFromBeforeAChangeLeavesFirst(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	b := &backend{resolve: func(ctx context.Context, _ string) (Maker, error) {
		close(asked)
		select {
		case <-answer:
		case <-ctx.Done():
		}
		return Maker{ARN: "a", Account: "b", UserID: "c", ValidUntil: time.Unix(1, 0)}, nil
	}}
	s, h := serverOf(t, b, time.Hour)
	s.fence.limit = time.Hour
	events := eventsOf(t, h)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+PathVerify, strings.NewReader(`{"cluster":"demo"}`))
		if err != nil {
			return
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-asked
	b.tell(Change{UserIDs: []string{"AIDA"}})
	select {
	case e := <-events:
		close(answer)
		t.Fatalf("%+v came before the answer from before it", e)
	case <-time.After(50 * time.Millisecond):
	}
	close(answer)
	<-answered
	if e := <-events; e.Sequence != 2 || len(e.UserIDs) != 1 {
		t.Errorf("%+v", e)
	}
}

func TestAHeartbeatIsEmptyAndManyNamesAreAll(t *testing.T) {
	b := &backend{}
	_, h := serverOf(t, b, 10*time.Millisecond)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+PathChanges, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stream.Body)
	next := func() (e Event) {
		t.Helper()
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	next()
	if beat := next(); beat.Sequence != 2 || !beat.Empty() {
		t.Errorf("%+v", beat)
	}
	b.tell(Change{Instances: make([]string, MaxNamed+1)})
	e := next()
	for e.Empty() {
		e = next()
	}
	if !e.All || len(e.Instances) > 0 {
		t.Errorf("%d names", len(e.Instances))
	}
	_ = stream.Body.Close()
	<-b.feeds[0].closed // a client that has gone costs nothing
}

func TestTheSocketIsPrivate(t *testing.T) {
	s, _ := serverOf(t, &backend{}, time.Hour)
	path := filepath.Join(t.TempDir(), "run", "s")
	for range 2 { // the second time over what the first left
		l, err := s.Listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
	}
}

func TestWhoIsTrusted(t *testing.T) {
	for _, test := range []struct {
		uid  uint32
		own  int
		want bool
	}{{0, 1000, true}, {1000, 1000, true}, {1001, 1000, false}, {1000, 0, false}} {
		if got := trustedPeer(test.uid, test.own); got != test.want {
			t.Errorf("user %d at a service of %d: %v", test.uid, test.own, got)
		}
	}
}

// An authenticator of the release before does not know that sessions end together, and must not take the event for a
// heartbeat.
func TestSessionsAreAllToWhomDoesNotKnowThem(t *testing.T) {
	for query, want := range map[string]Change{"": {All: true}, "?" + querySessions: {Sessions: true}} {
		b := &backend{}
		_, h := serverOf(t, b, time.Hour)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+PathChanges+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stream.Body)
		lines.Scan() // whatever was before
		b.tell(Change{Sessions: true})
		var e Event
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &e) != nil || !cmp.Equal(e.Change, want) {
			t.Errorf("%q: %s", query, lines.Text())
		}
		_ = stream.Body.Close()
	}
}
