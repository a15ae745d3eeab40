// SPDX-License-Identifier: Apache-2.0

package httpserve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "localhost:1": false, "127.0.0.1": false, "": false,
	} {
		if got := Loopback(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}

func TestOpenSaysWhatFor(t *testing.T) {
	var s Set
	defer s.Close()
	l, err := s.Open(t.Context(), "health", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"localhost:80":      `the address "localhost:80" for metrics is not an IP address and a port`,
		l.Addr().String():   "opening the port for metrics",
		"127.0.0.1:1000000": "is not an IP address and a port",
	} {
		if _, err := s.Open(t.Context(), "metrics", address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// open starts a server that answers with h, and returns where it is and what ends it.
func open(t *testing.T, grace time.Duration, h http.HandlerFunc) (url string, l net.Listener, end func(), ended <-chan error) {
	t.Helper()
	s := &Set{Logger: slog.New(slog.DiscardHandler), Grace: grace}
	l, err := s.Open(t.Context(), "tests", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Handle(l, h)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(cancel)
	return "http://" + l.Addr().String(), l, cancel, done
}

func get(t *testing.T, url string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := new(http.Transport).RoundTrip(r)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	return string(body), errors.Join(err, response.Body.Close())
}

func TestWhoWaitsIsAnsweredInTheEnd(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	url, _, end, ended := open(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		_, _ = io.WriteString(w, "at last")
	})
	got := make(chan string)
	go func() {
		body, err := get(t, url)
		if err != nil {
			body = err.Error()
		}
		got <- body
	}()
	<-asked
	time.AfterFunc(50*time.Millisecond, func() { close(answer) })
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if body := <-got; body != "at last" {
		t.Error(body)
	}
	if _, err := get(t, url); err == nil {
		t.Error("it answers after its end")
	}
}

func TestWhoWaitsTooLongIsCutOff(t *testing.T) {
	asked := make(chan struct{})
	url, _, end, ended := open(t, 10*time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	failed := make(chan error)
	go func() {
		_, err := get(t, url)
		failed <- err
	}()
	<-asked
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("it was answered")
	}
}

func TestAPortThatFailsEndsAll(t *testing.T) {
	_, l, _, ended := open(t, time.Second, http.NotFound)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "serving at "+l.Addr().String()) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}
