// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// soon is how late a revocation may be told, with room for a busy machine.
const soon = time.Second

func within(t *testing.T, events <-chan Event, what string) {
	t.Helper()
	select {
	case e := <-events:
		if e.Empty() {
			t.Errorf("%s: %+v", what, e)
		}
	case <-time.After(soon):
		t.Errorf("%s: nothing was told within %s", what, soon)
	}
}

// writes reports whether an answer is being written.
func (f *fence) writes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.all {
		l.mu.Lock()
		writing := l.writing
		l.mu.Unlock()
		if writing {
			return true
		}
	}
	return false
}

// unbuffered is a connection to a handler on which what is not read cannot be written: there are no buffers of a kernel
// to fill first.
func unbuffered(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	client, end := net.Pipe()
	l := &single{connection: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.connection <- end
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _, _ = client.Close(), server.Close(); <-done })
	return client
}

// single is a listener of one connection.
type single struct {
	connection chan net.Conn
	closed     chan struct{}
	once       sync.Once
}

// Accept waits.
func (l *single) Accept() (net.Conn, error) {
	select {
	case c := <-l.connection:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *single) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is none.
func (*single) Addr() net.Addr { return &net.UnixAddr{} }

// A client that does not read what it asked for neither holds a revocation back nor gets what is not true any more.
func TestWhoDoesNotReadHoldsNobodyUp(t *testing.T) {
	b := &backend{resolve: func(context.Context, string) (Maker, error) {
		return Maker{ARN: strings.Repeat("a", MaxAnswer/2), Account: "b", UserID: "c", ValidUntil: time.Unix(1, 0)}, nil
	}}
	s, h := serverOf(t, b, time.Hour)
	events := eventsOf(t, h)
	hung := unbuffered(t, h.Config.Handler)
	if _, err := fmt.Fprintf(hung, "POST %s HTTP/1.1\r\nHost: identity\r\nContent-Length: 18\r\n\r\n{\"cluster\":\"demo\"}", PathVerify); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !s.fence.writes(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is answered")
		}
	}
	began := time.Now()
	b.tell(Change{UserIDs: []string{"AIDA"}})
	within(t, events, "somebody does not read")
	if took := time.Since(began); took < fenceTime/2 {
		t.Fatalf("the event came after %s, so nobody was in its way", took)
	}
	_ = hung.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.Copy(io.Discard, hung); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("the connection is still there: %v", err)
	}
}

// A lookup from before a change that took too long is not an answer any more.
func TestWhatWasLookedUpTooLongAgoIsNoAnswer(t *testing.T) {
	asked, hold := make(chan struct{}, 1), make(chan struct{})
	b := &backend{resolve: func(_ context.Context, id string) (Maker, error) {
		if id == "slow" {
			asked <- struct{}{}
			<-hold
		}
		return Maker{ARN: "a", Account: "b", UserID: "c", ValidUntil: time.Unix(1, 0)}, nil
	}}
	s, h := serverOf(t, b, time.Hour)
	events := eventsOf(t, h)
	ask := func(id string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+PathVerify, strings.NewReader(`{"cluster":"demo","query":"`+id+`"}`))
		if err != nil {
			return 0
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	slow := make(chan int, 1)
	go func() { slow <- ask("slow") }()
	<-asked
	b.tell(Change{UserIDs: []string{"AIDA"}})
	began := time.Now()
	if status := ask("quick"); status != http.StatusOK || time.Since(began) > soon {
		t.Errorf("another question is answered %d after %s", status, time.Since(began))
	}
	within(t, events, "an answer takes long")
	close(hold)
	if status := <-slow; status != http.StatusServiceUnavailable {
		t.Errorf("what was looked up before the change is answered %d after its event", status)
	}
	if status := ask("quick"); status != http.StatusOK {
		t.Errorf("what is looked up after it is answered %d", status)
	}
	under := func() int {
		s.fence.mu.Lock()
		defer s.fence.mu.Unlock()
		return len(s.fence.all)
	}
	for end := time.Now().Add(time.Minute); under() > 0; <-time.After(time.Millisecond) { // they end after their clients have them
		if time.Now().After(end) {
			t.Fatalf("%d answers are still under way", under())
		}
	}
}
