// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice/keyservicetest"
)

// authorities are those of accounts, by the test.
var authorities sync.Map

func authorityOf(t *testing.T) *keyservicetest.Authority {
	t.Helper()
	if a, ok := authorities.Load(t.Name()); ok {
		return a.(*keyservicetest.Authority)
	}
	a := keyservicetest.New(t)
	authorities.Store(t.Name(), a)
	t.Cleanup(func() { authorities.Delete(t.Name()) })
	return a
}

// onSocket serves a handler on a unix socket, with the account's certificate.
func onSocket(t *testing.T, h http.HandlerFunc) (socket string, server *http.Server) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	secured, err := Credential(authorityOf(t).Account(t)).server()
	if err != nil {
		t.Fatal(err)
	}
	server = &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(tls.NewListener(l, secured)) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return socket, server
}

func clientOf(t *testing.T, socket string, change func(*ClientConfig)) *Client {
	t.Helper()
	c := ClientConfig{Socket: socket, Credential: Credential(authorityOf(t).Caller(t, caller.Authenticator("demo", "0A1B"))), Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	client, err := NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func sends(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestAClientReadsAnswers(t *testing.T) {
	want := Maker{
		ARN: "arn:aws:sts::000000000000:assumed-role/nodes/i-1", Account: "000000000000", UserID: "AROA1", SessionName: "i-1",
		Instance: &identity.Instance{ID: "i-1", PrivateDNSName: "ip-1.internal"}, Machine: &identity.Machine{ID: "i-1", Cluster: "demo"}, ValidUntil: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	}
	var asked Question
	socket, _ := onSocket(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&asked)
		_ = json.NewEncoder(w).Encode(AnswerOf(want))
	})
	question := Question{Cluster: "demo", Host: "sts.example:8443", Query: "a=b&c=%2F<>"}
	got, err := clientOf(t, socket, nil).Verify(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(question, asked); diff != "" {
		t.Errorf("-want +asked:\n%s", diff)
	}
}

func TestOnlyAReasonedNoIsANo(t *testing.T) {
	secret := strings.Repeat("s3cret", 3)
	const whole = `{"arn":"a","account":"b","userID":"c","validUntil":"2026-11-21T12:00:00Z"}`
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		no     bool
		ok     bool
	}{
		{"an answer", sends(200, whole), false, true},
		{"a no", sends(404, `{"code":"InvalidClientTokenId","reason":"there is no such key"}`), true, false},
		{"404 of something else", sends(404, "404 page not found"), false, false},
		{"404 in JSON of something else", sends(404, `{"error":"x"}`), false, false},
		{"403", sends(403, `{"code":"AccessDenied"}`), false, false},
		{"500", sends(500, secret), false, false},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/v1/other", http.StatusTemporaryRedirect)
		}, false, false},
		{"no JSON", sends(200, secret), false, false},
		{"no ARN", sends(200, strings.Replace(whole, `"arn":"a"`, `"arn":""`, 1)), false, false},
		{"no end", sends(200, strings.Replace(whole, `"validUntil"`, `"x"`, 1)), false, false},
		{"an instance without a name", sends(200, strings.Replace(whole, `{`, `{"instance":{"id":"i-1"},`, 1)), false, false},
		{"an instance of a service that knows no clusters", sends(200, strings.Replace(whole, `{`, `{"instance":{"id":"i-1","privateDNSName":"x"},`, 1)), false, false},
		{"an instance that is another machine", sends(200, strings.Replace(whole, `{`, `{"instance":{"id":"i-1","privateDNSName":"x"},"machine":{"id":"i-2"},`, 1)), false, false},
		{"a machine without an id", sends(200, strings.Replace(whole, `{`, `{"machine":{"cluster":"a"},`, 1)), false, false},
		{"an instance of no cluster", sends(200, strings.Replace(whole, `{`, `{"instance":{"id":"i-1","privateDNSName":"x"},"machine":{"id":"i-1"},`, 1)), false, true},
		{"an endless answer", sends(200, `{"arn":"`+strings.Repeat("A", MaxAnswer)+`"}`), false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			socket, _ := onSocket(t, tc.answer)
			_, err := clientOf(t, socket, nil).Verify(t.Context(), Question{Query: secret})
			_, no := errors.AsType[*Unknown](err)
			if no != tc.no || (err == nil) != tc.ok {
				t.Errorf("%v", err)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
	if _, err := clientOf(t, "/nowhere/s", nil).Verify(t.Context(), Question{}); err == nil || !strings.Contains(err.Error(), "/nowhere/s") {
		t.Errorf("without a service: %v", err)
	}
	if !trustedPeer(0, 1000) || !trustedPeer(1000, 1000) || trustedPeer(1001, 1000) {
		t.Error("only root and this user may listen")
	}
}

// script is a stream that a test writes.
type script struct {
	lines chan string
	began atomic.Int64
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.began.Add(1)
	control := http.NewResponseController(w)
	_ = control.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case line := <-s.lines:
			line, last := strings.CutPrefix(line, "last:")
			_, _ = w.Write([]byte(line + "\n"))
			_ = control.Flush()
			if last { // the next line is for the next stream
				<-r.Context().Done()
				return
			}
		}
	}
}

func TestTheStreamOfChanges(t *testing.T) {
	s := &script{lines: make(chan string)}
	socket, _ := onSocket(t, s.ServeHTTP)
	var now atomic.Int64
	start := time.Now()
	c := clientOf(t, socket, func(c *ClientConfig) {
		c.Now = func() time.Time { return start.Add(time.Duration(now.Load())) }
		c.StaleAfter, c.QuietAfter = time.Hour, time.Hour // the clock that hangs up is the real one
	})
	told := make(chan Change, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Watch(ctx, func(change Change) { told <- change }) }()
	defer func() { cancel(); <-done }()
	if c.Live() {
		t.Error("alive before it began")
	}
	expect := func(want Change) {
		t.Helper()
		if diff := cmp.Diff(want, <-told); diff != "" {
			t.Errorf("-want +told:\n%s", diff)
		}
	}
	s.lines <- `{"sequence":1}`
	expect(Change{All: true}) // nobody knows what was before
	s.lines <- `{"sequence":2}`
	s.lines <- `{"sequence":3,"accessKeyIDs":["AKIA1"],"userIDs":["AIDA1"],"instances":["i-1"]}`
	expect(Change{AccessKeyIDs: []string{"AKIA1"}, UserIDs: []string{"AIDA1"}, Instances: []string{"i-1"}})
	s.lines <- `{"sequence":4,"sessions":true}`
	expect(Change{Sessions: true})
	now.Store(int64(time.Second))
	s.lines <- `{"sequence":5}`
	for c.heard.Load() != int64(time.Second) { // the event has been heard, and no later one is on its way
		<-time.After(time.Millisecond)
	}
	if !c.Live() {
		t.Error("not alive although it was heard of")
	}
	now.Store(int64(time.Hour + 2*time.Second))
	if c.Live() {
		t.Error("alive although it was not heard of for long")
	}
	for _, broken := range []string{`{"sequence":7}`, `{"sequence":`, "", strings.Repeat("x", MaxAnswer)} { // a gap, no JSON, nothing, no end
		s.lines <- "last:" + broken
		s.lines <- `{"sequence":1}`
		expect(Change{All: true})
	}
	if n := s.began.Load(); n != 5 {
		t.Errorf("the stream began %d times", n)
	}
}

// Older answers may be used for long after a stream that says nothing is given up.
func TestQuietIsNotStale(t *testing.T) {
	for name, test := range map[string]struct{ stale, want time.Duration }{
		"by default": {0, StaleAfter}, "long": {time.Minute, StaleAfter}, "short": {2 * time.Second, 2 * time.Second},
	} {
		c := clientOf(t, "/socket", func(c *ClientConfig) { c.StaleAfter = test.stale })
		if c.config.QuietAfter != test.want {
			t.Errorf("%s: a stream is given up after %s", name, c.config.QuietAfter)
		}
	}
}

func TestAStreamThatSaysNothingIsBegunAnew(t *testing.T) {
	s := &script{lines: make(chan string)}
	socket, _ := onSocket(t, s.ServeHTTP)
	c := clientOf(t, socket, func(c *ClientConfig) { c.StaleAfter = 20 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Watch(ctx, func(Change) {}) }()
	defer func() { cancel(); <-done }()
	deadline := time.After(time.Minute)
	for s.began.Load() < 3 {
		select {
		case <-deadline:
			t.Fatal("it waits for ever")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestNothingOnTheWireIsPrinted(t *testing.T) {
	for _, v := range []any{
		Question{Cluster: "demo", Query: "s3cret"}, Refused{SessionToken: "s3cret"}, RoleCredentials{SecretAccessKey: "s3cret", SessionToken: "s3cret"},
	} {
		var b strings.Builder
		slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", v)
		for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", v, v, v, v), b.String()} {
			if strings.Contains(text, "s3cret") || strings.Contains(text, "[115") || strings.Contains(text, "0x73") {
				t.Errorf("%T is printed with its secret: %s", v, text)
			}
		}
	}
}
