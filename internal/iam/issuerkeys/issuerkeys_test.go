// SPDX-License-Identifier: Apache-2.0

package issuerkeys_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"

	"muster.dev/muster/internal/iam/issuerkeys"
	"muster.dev/muster/internal/iam/webidentity"
)

// issuer is a server of documents that fails on demand.
type issuer struct {
	*httptest.Server

	mu       sync.Mutex
	ids      []string
	answer   func(http.ResponseWriter, *http.Request) bool // true: that was all
	requests int
	now      time.Time
}

func newIssuer(t *testing.T, ids ...string) *issuer {
	t.Helper()
	i := &issuer{ids: ids, now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.requests++
		if i.answer != nil && i.answer(w, r) {
			return
		}
		switch r.URL.Path {
		case "/id/1/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL + "/id/1", "jwks_uri": i.URL + "/keys"})
		case "/keys":
			var set jose.JSONWebKeySet
			for _, id := range i.ids {
				set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id})
			}
			w.Header().Set("Cache-Control", "public, max-age=600")
			_ = json.NewEncoder(w).Encode(set)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *issuer) asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests
}

func (i *issuer) fetcher() *issuerkeys.Fetcher {
	roots := x509.NewCertPool()
	roots.AddCert(i.Certificate())
	return issuerkeys.New(issuerkeys.Config{Roots: roots, Refuse: func(netip.Addr) error { return nil }, Now: func() time.Time {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.now
	}})
}

func TestKeysAreKept(t *testing.T) {
	i := newIssuer(t, "a")
	f := i.fetcher()
	want := func(what, id string, has bool, requests int) {
		t.Helper()
		before := i.asked()
		keys, err := f.Keys(t.Context(), i.URL+"/id/1", id)
		if err != nil || keys.Has(id) != has || i.asked()-before != requests {
			t.Errorf("%s: %v, %v, %d requests; want %v, %d", what, keys.IDs(), err, i.asked()-before, has, requests)
		}
	}
	want("at first", "a", true, 2)
	want("once more", "a", true, 0)
	want("another id at once", "b", false, 0)
	i.set(func() { i.now, i.ids = i.now.Add(31*time.Second), []string{"a", "b"} })
	want("another id later", "b", true, 2)
	i.set(func() { i.now = i.now.Add(11 * time.Minute) })
	want("when they are old", "a", true, 2)
	i.set(func() {
		i.now = i.now.Add(11 * time.Minute)
		i.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
	})
	want("while the issuer is away", "a", true, 1)
	want("at once again", "a", true, 0)
	i.set(func() { i.now = i.now.Add(25 * time.Hour) })
	if _, err := f.Keys(t.Context(), i.URL+"/id/1", "a"); err == nil {
		t.Error("keys of yesterday are good")
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"a redirect": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/keys" {
				return false
			}
			http.Redirect(w, r, "/id/1/.well-known/openid-configuration", http.StatusFound)
			return true
		},
		"another issuer's": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{"issuer":"https://evil.example","jwks_uri":"https://evil.example/keys"}`))
			return true
		},
		"an endless one": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(strings.Repeat(" ", webidentity.MaxDocument+1)))
			return true
		},
		"no key": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/keys" {
				return false
			}
			_, _ = w.Write([]byte(`{"keys":[]}`))
			return true
		},
		"no document": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNoContent); return true },
	} {
		i := newIssuer(t, "a")
		i.set(func() { i.answer = answer })
		f := i.fetcher()
		if keys, err := f.Keys(t.Context(), i.URL+"/id/1", "a"); err == nil {
			t.Errorf("%s: %v", name, keys.IDs())
		}
		before := i.asked()
		if _, err := f.Keys(t.Context(), i.URL+"/id/1", "a"); err == nil || i.asked() != before {
			t.Errorf("%s: asked again at once, %v", name, err)
		}
	}
}

// An issuer is not where it could be this host, and not by a certificate that nobody vouches for.
func TestIssuersThatAreNotAsked(t *testing.T) {
	i := newIssuer(t, "a")
	roots := x509.NewCertPool()
	roots.AddCert(i.Certificate())
	for name, c := range map[string]issuerkeys.Config{
		"on this host":             {Roots: roots},
		"by another's certificate": {Roots: x509.NewCertPool(), Refuse: func(netip.Addr) error { return nil }},
	} {
		if _, err := issuerkeys.New(c).Keys(t.Context(), i.URL+"/id/1", "a"); err == nil || i.asked() != 0 {
			t.Errorf("%s: %v, %d requests", name, err, i.asked())
		}
	}
	if _, err := i.fetcher().Keys(t.Context(), strings.Replace(i.URL, "https", "http", 1)+"/id/1", "a"); err == nil {
		t.Error("an issuer was asked by http")
	}
}

// Many who ask cause one fetch, and one who goes away takes nothing from the others.
func TestManyAskOnce(t *testing.T) {
	i := newIssuer(t, "a")
	f := i.fetcher()
	ctx := t.Context()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			if n%2 == 0 {
				_, _ = f.Keys(gone, i.URL+"/id/1", "a") // whatever it gets
				return
			}
			if keys, err := f.Keys(ctx, i.URL+"/id/1", "a"); err != nil || !keys.Has("a") {
				t.Errorf("%v, %v", keys.IDs(), err)
			}
		})
	}
	group.Wait()
	if i.asked() != 2 {
		t.Errorf("%d requests", i.asked())
	}
}
