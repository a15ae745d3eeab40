// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// TestFullConnection asks more at once than a server allows on a connection: none was cut, and the rest goes over few
// others, which end when they have no requests any more.
func TestFullConnection(t *testing.T) {
	t.Parallel()
	const allowed, asked = 4, 40
	s := newHeld(t, allowed)
	k := s.kept(t)
	failures := make(chan error, asked)
	for range asked {
		go func() { failures <- s.ask(t.Context(), k) }()
	}
	for range asked {
		select {
		case <-s.held:
		case err := <-failures:
			t.Fatal("a request that nobody answers: ", err)
		}
	}
	if n := s.dialled.Load(); n < asked/allowed || n > asked/allowed+2 {
		t.Errorf("%d requests at once, of which a connection may have %d, took %d connections", asked, allowed, n)
	}
	close(s.answer)
	for range asked {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	if err := s.ask(t.Context(), k); err != nil {
		t.Error(err)
	}
	if len(k.connections) != 1 {
		t.Errorf("%d connections are kept", len(k.connections))
	}
}

// TestFullConnectionIsCut cuts the connection beside a full one, which has no request at that time.
func TestFullConnectionIsCut(t *testing.T) {
	t.Parallel()
	s := newHeld(t, 1)
	k := s.kept(t)
	first, err := k.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.more(); err != nil {
		t.Fatal(err)
	}
	beside := k.connections[1]
	_ = beside.frames.Close()
	for !beside.State().Closed {
		<-time.After(time.Millisecond)
	}
	if _, err := k.take(t.Context()); !errors.Is(err, errCut) {
		t.Errorf("the connection beside was cut: %v", err)
	}
	if first.State().Closed {
		t.Error("the first connection was closed")
	}
}

// TestServerLeaves has a server tell one of two connections that it leaves: the other leads to it, too, and neither does
// the one that was being made meanwhile lead elsewhere.
func TestServerLeaves(t *testing.T) {
	t.Parallel()
	s := newHeld(t, 1)
	k := s.kept(t)
	if _, err := k.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.more(); err != nil {
		t.Fatal(err)
	}
	told, beside := k.connections[0], k.connections[1]
	told.frames.left.Store(true)
	next, err := k.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if next == told || next == beside || s.dialled.Load() != 3 {
		t.Errorf("the next request goes over a connection from before, of %d", s.dialled.Load())
	}
	if !beside.State().Closed || told.State().Closed {
		t.Error("of the connections from before, the one without requests is not the one that ended")
	}
}

// held is a server that answers nothing until it is told to, and counts connections.
type held struct {
	*httptest.Server
	held    chan struct{}
	answer  chan struct{}
	dialled atomic.Int32
}

func newHeld(t *testing.T, allowed int) *held {
	t.Helper()
	s := &held{held: make(chan struct{}, 1000), answer: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.held <- struct{}{}
		select {
		case <-s.answer:
		case <-r.Context().Done():
		}
	}))
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: allowed}
	s.Config.ConnState = func(_ net.Conn, is http.ConnState) {
		if is == http.StateNew {
			s.dialled.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *held) kept(t *testing.T) *kept {
	t.Helper()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{door: Door{Address: at.Host}, tls: s.Client().Transport.(*http.Transport).TLSClientConfig} //nolint:forcetypeassert // httptest's
	t.Cleanup(k.Close)
	return k
}

func (s *held) ask(ctx context.Context, k *kept) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return err
	}
	answer, err := k.RoundTrip(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
