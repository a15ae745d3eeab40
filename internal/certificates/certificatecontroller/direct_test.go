// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// serve starts a server and returns it, the requests that reach it, and how many connections it saw.
func serve(t *testing.T, handle http.HandlerFunc) (*httptest.Server, *rest.Config, *atomic.Int32) {
	t.Helper()
	var opened atomic.Int32
	s := httptest.NewUnstartedServer(handle)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return s, &rest.Config{Host: s.URL, UserAgent: "test", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, &opened
}

func ask(t *testing.T, d *direct, url, body string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := d.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err == nil && int64(len(raw)) != answer.ContentLength {
		t.Errorf("the length is %d, not %d", answer.ContentLength, len(raw))
	}
	return string(raw), err
}

func echo(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body) // HTTP/1.1 wants the request to end before the answer begins
	_, _ = w.Write(raw)
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	s, config, opened := serve(t, echo)
	d := &direct{config: config}
	for n := range 10 {
		body := strings.Repeat("x", n*3000)
		if got, err := ask(t, d, s.URL, body); err != nil || got != body {
			t.Fatalf("%d bytes came back, and %v", len(got), err)
		}
	}
	if opened.Load() != 1 {
		t.Errorf("%d connections", opened.Load())
	}
	d.idle[0].born = time.Now().Add(-longestLife)
	for range 2 { // the first gets an old one and closes it
		if _, err := ask(t, d, s.URL, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if opened.Load() != 2 {
		t.Errorf("%d connections, one of which was old", opened.Load())
	}
	d.drop(d.idle[0])
	if _, err := ask(t, d, s.URL, "x"); err != nil || len(d.idle) != 1 || opened.Load() != 3 {
		t.Errorf("%d idle of %d after one was dropped: %v", len(d.idle), opened.Load(), err)
	}
}

// The memory of an answer is used again when it was read, and not before.
func TestAnswersStayUntilTheyAreClosed(t *testing.T) {
	s, config, _ := serve(t, echo)
	d := &direct{config: config}
	for range 2 { // the second time in memory that was used
		answers := map[string]*http.Response{}
		for _, text := range []string{"first", "other", "third"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if answers[text], err = d.RoundTrip(r); err != nil { //nolint:bodyclose // each is, below
				t.Fatal(err)
			}
		}
		for text, answer := range answers {
			if got, err := io.ReadAll(answer.Body); err != nil || string(got) != text {
				t.Errorf("%q came back, not %q: %v", got, text, err)
			}
		}
		for _, answer := range answers {
			for range 2 { // once more changes nothing
				if err := answer.Body.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestServersAreVerified(t *testing.T) {
	s, _, _ := serve(t, echo)
	if _, err := ask(t, &direct{config: &rest.Config{Host: s.URL}}, s.URL, "x"); err == nil {
		t.Error("without an authority it was trusted")
	}
}

// Whatever is odd ends the connection: the next answer must not be what somebody else was told.
func TestOddAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"more than one answer": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
		"the last one":         "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"not the last":         "HTTP/1.1 102 Processing\r\n\r\n",
		"too short":            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
		"too long":             fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", longestAnswer+1, strings.Repeat("x", longestAnswer+1)),
		"nonsense":             "nonsense\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, config, opened := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				c, out, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				_, _ = out.WriteString(answer)
				_ = out.Flush()
				if name == "too short" {
					_ = c.Close()
				}
			})
			d := &direct{config: config}
			for n := range 2 {
				got, err := ask(t, d, s.URL, "x")
				if good := got == "ok" && err == nil; good != strings.Contains(answer, "\r\n\r\nok") || int(opened.Load()) != n+1 {
					t.Errorf("%q and %v, with %d connections", got, err, opened.Load())
				}
			}
		})
	}
}

func TestRequestsEndWithTheirContext(t *testing.T) {
	arrived := make(chan bool)
	s, config, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = bufio.NewReader(r.Body).WriteTo(io.Discard)
		close(arrived)
		<-r.Context().Done()
	})
	d := &direct{config: config}
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		stop(enough)
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := d.RoundTrip(r); !errors.Is(err, enough) || len(d.idle) > 0 {
		if err == nil {
			_ = answer.Body.Close()
		}
		t.Errorf("%v, and %d connections are kept", err, len(d.idle))
	}
}
