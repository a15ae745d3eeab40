// SPDX-License-Identifier: Apache-2.0

package signerclient

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/statedir"
)

// signer answers at the address of a cluster's, as a test says. Package tokensigner has tests with a real one.
type signer struct {
	t       *testing.T
	cluster component.Config

	mu      sync.Mutex
	answer  http.HandlerFunc
	ordered []tokenkeys.Order
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{t: t, cluster: component.Config{Dir: statedir.Dir(t.TempDir()).Cluster("blue"), Places: portplan.Ports{}.Places(), Network: clusternetworktest.Network()}}
	c := &s.cluster
	c.Cluster.Spec.Network.ServiceCIDR = "10.100.0.0/16"
	credentials, err := component.Credentials(*c)
	if err == nil {
		err = os.MkdirAll(c.Dir.PKI(), 0o700)
	}
	if err == nil {
		_, err = rotator.NewKeys(authority.NewStore(c.Dir.PKI())).Ensure(credentials, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.Credential(component.TokenSigner), c.Credential(component.TokenSigner))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	raw, err := os.ReadFile(c.Authority(authority.FrontProxy))
	if err != nil || !pool.AppendCertsFromPEM(raw) {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.TLS.PeerCertificates[0].Subject.CommonName; name != component.UserAccount {
			t.Errorf("%s asks", name)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Method == http.MethodPost {
			raw, err := io.ReadAll(r.Body)
			order, errOrder := tokenkeys.ParseOrder(raw)
			if err != nil || errOrder != nil {
				t.Errorf("%s: %v, %v", raw, err, errOrder)
			}
			s.ordered = append(s.ordered, order)
		}
		s.answer(w, r)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	c.Places.TokenSigner = component.At(server.Listener.Addr().(*net.TCPAddr).AddrPort())
	return s
}

func (s *signer) answers(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.ordered = h, nil
}

func sends(status int, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
}

func newRing(t *testing.T) (ring tokenkeys.Ring, list []byte) {
	t.Helper()
	ring, err := tokenkeys.New(time.Now(), tokenkeys.ES256, rand.Reader)
	if err == nil {
		list, err = tokenkeys.FormatPublic(ring)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ring, list
}

func TestTheLastListHolds(t *testing.T) {
	s := newSigner(t)
	k := New(s.cluster, slog.New(slog.DiscardHandler))
	if _, err := k.Ring(); !errors.Is(err, ErrUnknown) {
		t.Errorf("before the signer has told: %v", err)
	}
	ring, list := newRing(t)
	s.answers(sends(http.StatusOK, list))
	if err := k.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	private, err := tokenkeys.Format(ring)
	if err != nil {
		t.Fatal(err)
	}
	holds := func(k *Known) {
		t.Helper()
		if got, err := k.Ring(); err != nil || got.Last().ID != ring.Last().ID {
			t.Errorf("%v, %v", got, err)
		}
	}
	for want, answer := range map[string]http.HandlerFunc{
		"no list of public keys: keys[0]: private": sends(http.StatusOK, private),
		"no list of public keys: unexpected end":   sends(http.StatusOK, list[:len(list)/2]),
		"no list of public keys: it has more":      sends(http.StatusOK, []byte(strings.Repeat(" ", tokenkeys.MaxList+1))),
		"503 Service Unavailable: not now":         sends(http.StatusServiceUnavailable, []byte("not now \x1b[31m")),
		"answers 307 Temporary Redirect":           func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusTemporaryRedirect) },
		"asking the token signer":                  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		s.answers(answer)
		err := k.look(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("want %q, got %v", want, err)
		}
		holds(k)
	}
	holds(New(s.cluster, slog.New(slog.DiscardHandler))) // an account that was started again
	if err := os.WriteFile(s.cluster.Dir.TokenKeys(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := New(s.cluster, slog.New(slog.DiscardHandler))
	if _, err := damaged.Ring(); !errors.Is(err, ErrUnknown) {
		t.Errorf("of a damaged list: %v", err)
	}
	s.answers(sends(http.StatusOK, list))
	if err := damaged.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(damaged)
}

func TestRotate(t *testing.T) {
	s := newSigner(t)
	k := New(s.cluster, slog.New(slog.DiscardHandler))
	ring, list := newRing(t)
	next, err := ring.Rotate(time.Now(), time.Hour, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	then, err := tokenkeys.FormatPublic(next)
	if err != nil {
		t.Fatal(err)
	}
	// An answer is lost: the same order is given again.
	lost := false
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(list)
			return
		}
		if !lost {
			lost = true
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(then)
	})
	got, err := k.Rotate(t.Context(), time.Hour)
	if err != nil || got.Last().ID != next.Last().ID {
		t.Fatalf("%v, %v", got, err)
	}
	want := tokenkeys.Order{After: ring.Last().ID, Notice: time.Hour}
	if len(s.ordered) != 2 || s.ordered[0] != want || s.ordered[1] != want {
		t.Errorf("it was ordered %+v", s.ordered)
	}
	if known, err := k.Ring(); err != nil || known.Last().ID != next.Last().ID {
		t.Errorf("the account does not know at once: %v", err)
	}
	// A refusal is one, and is not tried again.
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(list)
			return
		}
		http.Error(w, "there are 64 keys already", http.StatusConflict)
	})
	if _, err := k.Rotate(t.Context(), time.Hour); err == nil || err.Error() != "there are 64 keys already" || len(s.ordered) != 1 {
		t.Errorf("%v, after %d orders", err, len(s.ordered))
	}
}

func TestRunAsksAgain(t *testing.T) {
	s := newSigner(t)
	_, list := newRing(t)
	asked := 0
	s.answers(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(list)
	})
	k := New(s.cluster, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); k.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := k.Ring(); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it is not asked again")
		}
		<-time.After(5 * time.Millisecond)
	}
}
