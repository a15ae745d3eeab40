// SPDX-License-Identifier: Apache-2.0

package pageserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/internal/console/pageserver/pageservertest"
)

// served is a server on a port.
type served struct {
	*bench
	address string
	end     context.CancelFunc
	ended   chan error
}

func serve(t *testing.T, b *bench) *served {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{bench: b, address: "http://" + listener.Addr().String(), end: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- b.server.Serve(ctx, listener) }()
	t.Cleanup(cancel)
	b.cookie = s.get(b.server.Ticket()).cookies[0]
	return s
}

// answer is what the server answers. Its body is read while the test runs.
type answer struct {
	code    int
	kind    string
	body    *bufio.Reader
	cookies []*http.Cookie
}

func (s *served) get(path string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.address+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = response.Body.Close() })
	return answer{response.StatusCode, response.Header.Get("Content-Type"), bufio.NewReader(response.Body), response.Cookies()}
}

// until reads events until one has a name and a text, and returns its data.
func until(t *testing.T, events *bufio.Reader, name, text string) string {
	t.Helper()
	for {
		line, err := events.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for the event %s with %q: %v", name, text, err)
		}
		if line != "event: "+name+"\n" {
			continue
		}
		data, err := events.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data = strings.TrimPrefix(strings.TrimSuffix(data, "\n"), "data: "); strings.Contains(data, text) {
			return data
		}
	}
}

func TestPagesStayCurrent(t *testing.T) {
	s := serve(t, newBench(t, pageservertest.World()))
	stream := s.get("/events?view=/&shown=other")
	if stream.code != http.StatusOK || stream.kind != "text/event-stream" {
		t.Fatalf("%d %s", stream.code, stream.kind)
	}
	events := stream.body
	var first, second struct{ HTML, Shown string }
	if err := json.Unmarshal([]byte(until(t, events, "view", "One thing needs a look")), &first); err != nil {
		t.Fatal(err)
	}
	until(t, events, "beat", "as of 12:00:00 UTC")
	next := pageservertest.World()
	next.At, next.Wrong.Reports = next.At.Add(time.Second), nil
	s.source.Set(next, nil)
	if err := json.Unmarshal([]byte(until(t, events, "view", "Nothing is wrong")), &second); err != nil {
		t.Fatal(err)
	}
	until(t, events, "beat", "as of 12:00:01 UTC")
	check(t, "the event", second.HTML)
	// A page that shows what there is already gets no other.
	again := s.get("/events?view=/&shown=" + second.Shown).body
	if line, err := again.ReadString('\n'); err != nil || line != "event: beat\n" {
		t.Errorf("a page that is current gets %q, %v", line, err)
	}
	if s.get("/events?view=http://evil.example/").code != http.StatusBadRequest || s.get("/events?view=/nothing").code != http.StatusNotFound {
		t.Error("streams of other pages are not refused")
	}
	s.end()
	until(t, events, "end", "the console has ended")
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

func TestLogsAreFollowed(t *testing.T) {
	b := newBench(t, pageservertest.World())
	for n := range 300 {
		b.source.Lines = append(b.source.Lines, fmt.Sprintf("line %03d", n))
	}
	s := serve(t, b)
	events := s.get("/events?logs=new&view=/machines/" + pageservertest.FirstOne).body
	until(t, events, "log", "line 100")
	until(t, events, "log", "line 299")
	s.source.More <- pageservertest.EvilLine
	if data := until(t, events, "log", "E1120"); strings.Contains(data, "hunter2") || strings.Contains(data, "\x1b") || strings.Contains(data, "\u202e") || strings.Contains(data, "<img") {
		t.Errorf("a line is %s", data)
	}
	s.source.More <- strings.Repeat("x", 10000)
	if data := until(t, events, "log", "xxx"); len(data) > 5000 {
		t.Errorf("a long line has %d bytes", len(data))
	}
	// A key may come in parts, and a line without an end: neither has a secret told by where it was cut.
	body := strings.Repeat("aB3/", 16)
	for _, line := range []string{"user-data | -----BEGIN RSA PRIVATE KEY-----", "user-data | " + body, "user-data | " + body, "user-data | -----END RSA PRIVATE KEY-----"} {
		s.source.More <- line
	}
	s.source.More <- strings.Repeat("y", 1<<17) + body
	s.source.More <- "the end"
	for line := ""; !strings.Contains(line, "the end"); {
		if line = until(t, events, "log", ""); strings.Contains(line, body[:8]) {
			t.Errorf("a key is told: %s", line)
		}
	}
	on := s.get("/events?logs=on&view=/machines/" + pageservertest.FirstOne).body
	until(t, on, "beat", "as of")
	go func() { // the first stream takes some of them
		for {
			select {
			case s.source.More <- "later":
			case <-t.Context().Done():
				return
			}
			<-time.After(time.Millisecond)
		}
	}()
	if data := until(t, on, "log", ""); strings.Contains(data, "line 299") {
		t.Errorf("a page that has the lines gets %s again", data)
	}
	text := s.get("/machines/" + pageservertest.FirstOne + "/logs")
	if raw, err := io.ReadAll(text.body); err != nil || !strings.Contains(string(raw), "line 299") || text.kind != "text/plain; charset=utf-8" {
		t.Errorf("as text: %s %v", raw, err)
	}
}

// A session that is over takes its streams along, and streams are bounded in number.
func TestStreamsEndWithTheirSession(t *testing.T) {
	s := serve(t, newBench(t, pageservertest.World()))
	events := s.get("/events?view=/").body
	until(t, events, "beat", "as of")
	for range 15 {
		until(t, s.get("/events?view=/changes").body, "beat", "as of")
	}
	if code := s.get("/events?view=/").code; code != http.StatusServiceUnavailable {
		t.Errorf("the seventeenth stream: %d", code)
	}
	for range 8 {
		s.later(time.Second)
		s.get(s.server.Ticket())
	}
	if rest, err := io.ReadAll(events); err != nil && !strings.Contains(err.Error(), "EOF") {
		t.Errorf("the stream does not end: %d bytes, %v", len(rest), err)
	}
}

// A stream ends with its session, also if that is over by its time and nobody asks for anything.
func TestStreamsEndAfterTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, pageservertest.World()).enter()
		const left = 3 * time.Second
		b.later(12*time.Hour - left)
		began := time.Now()
		w := b.ask(http.MethodGet, "/events?view=/")
		if took := time.Since(began); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "event: beat") || took != left {
			t.Errorf("%d: the stream ends after %v", w.Code, took)
		}
	})
}

// Nobody holds a connection by a body that never comes.
func TestBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	s := serve(t, newBench(t, pageservertest.World()))
	host := strings.TrimPrefix(s.address, "http://")
	connections := map[string]net.Conn{}
	for _, request := range []string{"POST /leave HTTP/1.1\r\nHost: " + host, "GET / HTTP/1.1\r\nHost: " + host, "POST /leave HTTP/1.1\r\nHost: evil.example"} {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp4", host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		if _, err := io.WriteString(connection, request+"\r\nContent-Length: 1000\r\n\r\ntoken="); err != nil {
			t.Fatal(err)
		}
		connections[request] = connection
	}
	const patience = 20 * time.Second
	deadline := time.Now().Add(patience)
	for request, connection := range connections {
		if err := connection.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(connection); err != nil {
			t.Errorf("%s: %v", request, err)
		}
	}
}
