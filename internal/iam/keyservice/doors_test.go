// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/keyservice/keyservicetest"
)

// account is a service with both of its sockets, as it runs.
type account struct {
	backend            *backend
	authority          *keyservicetest.Authority
	clusters           atomic.Pointer[map[string]bool]
	identity, metadata string
}

func newAccount(t *testing.T, change func(*Server)) *account {
	t.Helper()
	dir, err := os.MkdirTemp("", "k") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &account{authority: keyservicetest.New(t), identity: filepath.Join(dir, "identity.sock"), metadata: filepath.Join(dir, "metadata.sock")}
	a.clusters.Store(&map[string]bool{"a": true, "b": true})
	a.backend = &backend{resolve: func(_ context.Context, query string) (Maker, error) {
		return Maker{ARN: "arn:aws:iam::000000000000:user/" + query, Account: "000000000000", UserID: "AIDA", ValidUntil: time.Now().Add(time.Hour)}, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	for n, socket := range []string{a.identity, a.metadata} {
		s, err := NewServer(ServerConfig{
			Backend: a.backend, Credential: Credential(a.authority.Account(t)), Credentials: n == 1, Logger: slog.New(slog.DiscardHandler), Heartbeat: 20 * time.Millisecond,
			Clusters: func(who caller.Caller) bool { return (*a.clusters.Load())[who.Cluster] && who.ID == "0A1B" },
		})
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(s)
		}
		listener, err := s.Listen(ctx, socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve(ctx, listener); ended <- struct{}{} }()
	}
	t.Cleanup(func() { cancel(); <-ended; <-ended })
	return a
}

func (a *account) client(t *testing.T, socket string, credential keyservicetest.Credential) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{Socket: socket, Credential: Credential(credential), Logger: slog.New(slog.DiscardHandler), StaleAfter: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// tries are the questions that there are, each asked once; the error of each.
func tries(t *testing.T, c *Client, cluster string) map[string]error {
	t.Helper()
	_, verify := c.Verify(t.Context(), Question{Cluster: cluster, Host: "h", Query: "q"})
	_, credentials := c.RoleCredentials(t.Context(), "i-1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, changes := c.follow(ctx, func(Change) { cancel() })
	if errors.Is(changes, context.Canceled) {
		changes = nil
	}
	return map[string]error{"verify": verify, "role-credentials": credentials, "refused": c.Refused(t.Context(), Refused{}), "changes": changes}
}

// No credential opens a door that is not its own, whoever made it and whatever it says.
func TestEachCredentialOpensItsOwnDoorAlone(t *testing.T) {
	a := newAccount(t, nil)
	other := keyservicetest.New(t)
	trusting := func(c keyservicetest.Credential) keyservicetest.Credential { // somebody else's certificate, whose owner trusts the account
		c.CA = a.authority.Account(t).CA
		return c
	}
	for _, test := range []struct {
		name       string
		credential keyservicetest.Credential
		cluster    string // that is asked about
		identity   string // the answer of that server
		metadata   string
	}{
		{"a's authenticator about a", a.authority.Caller(t, caller.Authenticator("a", "0A1B")), "a", "verify refused changes", ""},
		{"a's authenticator about b", a.authority.Caller(t, caller.Authenticator("a", "0A1B")), "b", "refused changes", ""},
		{"a's authenticator about none", a.authority.Caller(t, caller.Authenticator("a", "0A1B")), "", "refused changes", ""},
		{"the authenticator of a cluster that there is not", a.authority.Caller(t, caller.Authenticator("c", "0A1B")), "c", "", ""},
		{"the authenticator of an earlier cluster of the name", a.authority.Caller(t, caller.Authenticator("a", "0A1A")), "a", "", ""},
		{"instance metadata", a.authority.Caller(t, caller.Metadata()), "a", "", "role-credentials changes"},
		{"the account itself", a.authority.Account(t), "a", "", ""},
		{"a certificate that may only serve", a.authority.Issue(t, func(c *x509.Certificate) {
			c.Subject.CommonName, c.Subject.Organization = caller.Authenticator("a", "0A1B").Subject()
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), "a", "", ""},
		{"one that has ended", a.authority.Issue(t, func(c *x509.Certificate) {
			c.Subject.CommonName, c.Subject.Organization = caller.Authenticator("a", "0A1B").Subject()
			c.NotAfter = time.Now().Add(-time.Minute)
		}), "a", "", ""},
		{"one that does not begin yet", a.authority.Issue(t, func(c *x509.Certificate) {
			c.Subject.CommonName, c.Subject.Organization = caller.Authenticator("a", "0A1B").Subject()
			c.NotBefore = time.Now().Add(time.Hour)
		}), "a", "", ""},
		{"two clusters in one", a.authority.Issue(t, func(c *x509.Certificate) {
			c.Subject.CommonName, c.Subject.Organization = "muster:authenticator:0A1B", []string{"muster:cluster:a", "muster:cluster:b"}
		}), "a", "", ""},
		{"another component of a", a.authority.Issue(t, func(c *x509.Certificate) { c.Subject.CommonName = "eks:authenticator" }), "a", "", ""},
		{"the same name by another authority", trusting(other.Caller(t, caller.Authenticator("a", "0A1B"))), "a", "", ""},
		{"metadata by another authority", trusting(other.Caller(t, caller.Metadata())), "a", "", ""},
		{"a's authenticator that trusts another authority", keyservicetest.Credential{CA: other.Account(t).CA, File: a.authority.Caller(t, caller.Authenticator("a", "0A1B")).File}, "a", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for socket, want := range map[string]string{a.identity: test.identity, a.metadata: test.metadata} {
				for what, err := range tries(t, a.client(t, socket, test.credential), test.cluster) {
					no, answered := errors.AsType[*Unknown](err)
					answered = err == nil || answered && no.Rule != "cluster" && no.Code != "" && what == "role-credentials"
					if answered != strings.Contains(want, what) {
						t.Errorf("%s at %s: %v", what, filepath.Base(socket), err)
					}
				}
			}
		})
	}
	for _, cluster := range a.backend.about {
		if cluster != "a" {
			t.Errorf("somebody was answered about cluster %q", cluster)
		}
	}
}

// Without a certificate, without TLS, and with an old version of it nobody is answered.
func TestWhoProvesNothingIsNotAnswered(t *testing.T) {
	a := newAccount(t, nil)
	pool, err := Credential(a.authority.Account(t)).read()
	if err != nil {
		t.Fatal(err)
	}
	mine, err := Credential(a.authority.Caller(t, caller.Authenticator("a", "0A1B"))).load()
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*tls.Config{
		"no TLS": nil, "no certificate": {RootCAs: pool, ServerName: caller.ServerName, MinVersion: tls.VersionTLS13},
		"an old TLS": {RootCAs: pool, ServerName: caller.ServerName, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*mine}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := "https"
			if config == nil {
				scheme = "http"
			}
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", a.identity)
			}}}
			defer client.CloseIdleConnections()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, scheme+"://"+caller.ServerName+PathVerify, strings.NewReader(`{"cluster":"a","query":"q"}`))
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				return
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusBadRequest || scheme == "https" { // Go says so to HTTP at a port for HTTPS
				t.Errorf("it is answered %s", response.Status)
			}
		})
	}
	if len(a.backend.about) > 0 {
		t.Errorf("somebody was answered about %q", a.backend.about)
	}
}

// A cluster's certificate is good for days after the cluster is gone; its connections are not good for a moment.
func TestTheAuthenticatorOfADeletedClusterIsNotAnswered(t *testing.T) {
	a := newAccount(t, nil)
	c := a.client(t, a.identity, a.authority.Caller(t, caller.Authenticator("a", "0A1B")))
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		_, err := c.follow(t.Context(), func(Change) { began <- struct{}{} })
		ended <- err
	}()
	<-began
	ask := func() error {
		_, err := c.Verify(t.Context(), Question{Cluster: "a", Query: "q"})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	a.clusters.Store(&map[string]bool{"b": true})
	if err := ask(); err == nil || !strings.Contains(err.Error(), "the account has no cluster a") {
		t.Errorf("on a connection of before: %v", err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the stream ends without an error")
		}
	case <-time.After(10 * time.Second):
		t.Error("it is told of changes on")
	}
}

// A certificate that ends while its connection is open opens nothing from then on.
func TestACertificateEndsOnOpenConnections(t *testing.T) {
	var ahead atomic.Int64
	a := newAccount(t, func(s *Server) { s.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } })
	c := a.client(t, a.identity, a.authority.Caller(t, caller.Authenticator("a", "0A1B")))
	for after, says := range map[time.Duration]string{0: "", 49 * time.Hour: "the client certificate of the authenticator of cluster a ended at"} {
		ahead.Store(int64(after))
		if _, err := c.Verify(t.Context(), Question{Cluster: "a", Query: "q"}); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("after %s: %v", after, err)
		}
	}
}

// Who reads a renewed credential is let in by it without being started anew.
func TestARenewedCredentialIsUsed(t *testing.T) {
	a := newAccount(t, nil)
	old := a.authority.Issue(t, func(c *x509.Certificate) { c.Subject.CommonName = "nobody" })
	c := a.client(t, a.identity, old)
	if _, err := c.Verify(t.Context(), Question{Cluster: "a", Query: "q"}); err == nil {
		t.Fatal("nobody is answered")
	}
	raw, err := os.ReadFile(a.authority.Caller(t, caller.Authenticator("a", "0A1B")).File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old.File, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Verify(t.Context(), Question{Cluster: "a", Query: "q"}); err != nil {
		t.Error(err)
	}
}

// One caller's connections are bounded, so that another finds a place.
func TestNoCallerTakesAllPlaces(t *testing.T) {
	p := newPlaces(nil, slog.New(slog.DiscardHandler))
	connections := make([]*placed, 0, maxOfOne)
	connect := func(who caller.Caller) (*placed, error) {
		p.free <- struct{}{}
		left, right := net.Pipe()
		t.Cleanup(func() { _ = right.Close() })
		c := &placed{Conn: left, places: p}
		return c, p.claim(c, who)
	}
	for range maxOfOne {
		c, err := connect(caller.Authenticator("a", "0A1B"))
		if err != nil {
			t.Fatal(err)
		}
		connections = append(connections, c)
	}
	late, err := connect(caller.Authenticator("a", "0A1B"))
	if err == nil || !strings.Contains(err.Error(), "the authenticator of cluster a has 256 connections already") {
		t.Errorf("one more: %v", err)
	}
	_ = late.Close()
	if _, err := connect(caller.Authenticator("b", "0A1B")); err != nil {
		t.Errorf("another: %v", err)
	}
	_ = connections[0].Close()
	_ = connections[0].Close() // twice is once
	if _, err := connect(caller.Authenticator("a", "0A1B")); err != nil {
		t.Errorf("when one has gone: %v", err)
	}
	if len(p.free) != maxOfOne+1 || p.taken[caller.Authenticator("a", "0A1B")] != maxOfOne {
		t.Errorf("%d places are taken, %d of them by a", len(p.free), p.taken[caller.Authenticator("a", "0A1B")])
	}
	if err := p.claim(connections[0], caller.Authenticator("a", "0A1B")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a connection that is closed: %v", err)
	}
}

// FuzzQuestion asks of every body that a's authenticator sends that it is answered about a's tokens, or not at all.
func FuzzQuestion(f *testing.F) {
	for _, seed := range []string{
		`{"cluster":"a","host":"sts.amazonaws.com","query":"Action=GetCallerIdentity"}`, `{"cluster":"b"}`, `{"cluster":"b","Cluster":"a"}`, `{"cluster":"a","cluster":"b"}`,
		`{"cluster":"a"} {"cluster":"b"}`, `{"cluster":"a\u0000"}`, `[]`, `null`, `{"cluster":["a"]}`, `{"CLUSTER":"a"}`, "{\"cluster\":\"a\xff\"}", `{"cluster":"a","query":"` + strings.Repeat("x", MaxQuery) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	b := &backend{}
	asked := 0
	b.resolve = func(context.Context, string) (Maker, error) {
		asked++
		return Maker{ARN: "a", Account: "b", UserID: "c", ValidUntil: time.Unix(1, 0)}, nil
	}
	s := &Server{config: ServerConfig{Backend: b, Clusters: func(who caller.Caller) bool { return who.Cluster == "a" }, Logger: slog.New(slog.DiscardHandler)}, fence: fence{limit: fenceTime, all: map[*leaving]struct{}{}}, now: time.Now}
	h := by(caller.Authenticator("a", "0A1B"), s.Handler())
	f.Fuzz(func(t *testing.T, body []byte) {
		asked, b.about = 0, nil
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, PathVerify, strings.NewReader(string(body))))
		var said Question
		whole := json.Unmarshal(body, &said) == nil && said.Cluster == "a" && len(body) <= MaxQuery
		switch {
		case recorder.Code == http.StatusOK && (asked != 1 || b.about[0] != "a" || !whole):
			t.Fatalf("%q is answered", body)
		case recorder.Code != http.StatusOK && asked > 0:
			t.Fatalf("%q is looked up, and answered %d", body, recorder.Code)
		case recorder.Code >= http.StatusInternalServerError:
			t.Fatalf("%q is answered %d", body, recorder.Code)
		}
		if len(s.fence.all) > 0 {
			t.Fatalf("%q is still under way", body)
		}
	})
}

// FuzzAnswer asks of every answer that it is read whole or not at all.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"arn":"a","account":"b","userID":"c","validUntil":"2026-11-21T12:00:00Z","instance":{"id":"i","privateDNSName":"n"}}`))
	f.Add([]byte(`{"arn":"a","validUntil":"0001-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"instance":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var a Answer
		if decode(body, &a) != nil {
			return
		}
		m, err := a.Maker()
		if err != nil {
			if m != (Maker{}) {
				t.Fatalf("%q is refused, and read", body)
			}
			return
		}
		if m.ARN == "" || m.Account == "" || m.UserID == "" || m.ValidUntil.IsZero() || m.Instance != nil && (m.Instance.ID == "" || m.Instance.PrivateDNSName == "" || m.Machine == nil || m.Machine.ID != m.Instance.ID) {
			t.Fatalf("%q is taken for an answer", body)
		}
	})
}
