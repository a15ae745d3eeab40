// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// server answers as an API server does: it has Leases, and tells who watches them.
type server struct {
	*httptest.Server
	code   atomic.Int32 // of the next answers
	once   atomic.Int32 // of the next answer alone
	left   atomic.Int32 // how often it has left; connections that are older are told that they end
	silent atomic.Bool  // writes are not told of

	mu      sync.Mutex
	leases  map[string]event
	events  []event
	version int
	changed chan struct{} // closed at the next event
	leaving chan struct{} // closed when watches end
}

type event struct {
	name, label string
	number      int64
	version     int
}

func (e event) json() string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d"},"spec":{"leaseTransitions":%d}}`, e.name, e.version, e.number)
}

// sinceLeft is the key of a connection's context for how often the server had left before.
type sinceLeft struct{}

// leave has the server say on its connections that they end, and end watches, as one does that is about to go. Later
// ones are those of the server that takes its place.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left.Add(1)
	close(s.leaving)
	s.leaving = make(chan struct{})
}

// tellTwice tells of the last write once more.
func (s *server) tellTwice() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(s.events[len(s.events)-1])
}

func (s *server) tell(e event) {
	s.version++
	e.version = s.version
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{leases: map[string]event{}, changed: make(chan struct{}), leaving: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, sinceLeft{}, s.left.Load())
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("watch") {
		s.watch(w, r)
		return
	}
	code := int(s.code.Load())
	if once := s.once.Swap(0); once != 0 {
		code = int(once)
	}
	if r.Context().Value(sinceLeft{}) != s.left.Load() {
		w.Header().Set("Connection", "close")
	}
	w.Header().Set("Retry-After", "1")
	if code != 0 {
		w.WriteHeader(code)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.leases[path.Base(r.URL.Path)]
	if r.Method == http.MethodPut {
		if is = s.put(r.Body, is); is.version == 0 {
			w.WriteHeader(http.StatusConflict)
			return
		}
	}
	_, _ = io.WriteString(w, is.json())
}

// put writes a Lease that is as its writer has read it.
func (s *server) put(body io.Reader, was event) event {
	var lease struct {
		Metadata struct {
			Name, ResourceVersion string
			Labels                map[string]string
		}
		Spec struct{ LeaseTransitions int64 }
	}
	_ = json.NewDecoder(body).Decode(&lease)
	if read, _ := strconv.Atoi(lease.Metadata.ResourceVersion); read != was.version {
		return event{}
	}
	is := event{name: lease.Metadata.Name, label: lease.Metadata.Labels["watch"], number: lease.Spec.LeaseTransitions}
	if s.silent.Load() {
		s.version++
	} else {
		s.tell(is)
	}
	is.version = s.version
	s.leases[is.name] = is
	return is
}

func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	label := strings.TrimPrefix(r.URL.Query().Get("labelSelector"), "watch=")
	s.mu.Lock()
	leaving := s.leaving
	s.mu.Unlock()
	for told := 0; ; {
		s.mu.Lock()
		events, changed := s.events[told:], s.changed
		s.mu.Unlock()
		told += len(events)
		for _, e := range events {
			if e.label == label && e.version > after {
				_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, e.json())
			}
		}
		w.(http.Flusher).Flush() //nolint:forcetypeassert // net/http's
		select {
		case <-r.Context().Done():
			return
		case <-leaving:
			return
		case <-changed:
		}
	}
}
