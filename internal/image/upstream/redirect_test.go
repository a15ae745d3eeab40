// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/image/upstream"
	"muster.dev/muster/internal/image/upstream/upstreamtest"
)

// heard are the Authorization headers that came to a server.
type heard struct {
	mutex sync.Mutex
	all   []string
}

func (h *heard) listen(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.mutex.Lock()
		if header := r.Header.Get("Authorization"); header != "" && !slices.Contains(h.all, header) {
			h.all = append(h.all, header)
		}
		h.mutex.Unlock()
		next(w, r)
	}
}

// leadTo has a registry redirect pulls that are logged in.
func leadTo(registry *upstreamtest.Registry, to string) {
	registry.Change(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "" || r.URL.Path == "/token" {
			return false
		}
		http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	})
}

// A host that a registry redirects to, and that asks for a password, gets neither the registry's password nor its
// token.
func TestRedirectGetsNoCredentials(t *testing.T) {
	for what, challenge := range map[string]string{
		"a password": `Basic realm="x"`,
		"a token":    `Bearer realm="https://HOST/token",service="registry.test"`,
	} {
		var there heard
		other, _ := serve(t, there.listen(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				_, _ = io.WriteString(w, `{"token":"others"}`)
				return
			}
			w.Header().Set("WWW-Authenticate", strings.ReplaceAll(challenge, "HOST", r.Host))
			w.WriteHeader(http.StatusUnauthorized)
		}))
		registry := upstreamtest.New()
		registry.Password = "secret"
		leadTo(registry, "https://"+other)
		name, way := serve(t, registry)
		c := newClient(t, upstream.Config{Registry: name, Way: way, Credentials: password(name, "secret")})
		for range 2 { // the second one has a token of the registry from its beginning
			_, _, err := c.Manifest(t.Context(), "library/web", "v1")
			if status, ok := errors.AsType[*upstream.StatusError](err); !ok || status.Status != http.StatusUnauthorized || status.Registry != other {
				t.Errorf("%s: %v, want 401 of %s", what, err, other)
			}
		}
		there.mutex.Lock()
		if slices.ContainsFunc(there.all, func(header string) bool { return header != "Bearer others" }) {
			t.Errorf("%s: the other host heard %q", what, there.all)
		}
		there.mutex.Unlock()
	}
}

// A host that a registry redirects to is asked with its own credentials, for the repository that is pulled from it.
func TestRedirectToKnownRegistry(t *testing.T) {
	target := upstreamtest.New()
	target.Password = "other"
	target.Put("library/web", "v1", "config", "layer")
	var there, here heard
	other, _ := serve(t, there.listen(target.ServeHTTP))
	registry := upstreamtest.New()
	registry.Password = "secret"
	leadTo(registry, "https://"+other)
	name, way := serve(t, here.listen(registry.ServeHTTP))
	own, others := password(name, "secret"), password(other, "other")
	c := newClient(t, upstream.Config{Registry: name, Way: way, Credentials: func(registry string) (string, string, error) {
		if registry == other {
			return others(registry)
		}
		return own(registry)
	}})
	body, _, err := c.Blob(t.Context(), "library/web", digest.FromString("layer"))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(body); string(content) != "layer" || errors.Join(err, body.Close()) != nil {
		t.Errorf("%q, %v", content, err)
	}
	const token, secret, others64 = "Bearer for.repository:library/web:pull", "Basic bWU6c2VjcmV0", "Basic bWU6b3RoZXI="
	if want := []string{secret, token}; !slices.Equal(here.all, want) {
		t.Errorf("the registry heard %q, want %q", here.all, want)
	}
	if want := []string{others64, token}; !slices.Equal(there.all, want) {
		t.Errorf("the other registry heard %q, want %q", there.all, want)
	}
}

// However many hosts ask for a token, few are asked for one.
func TestChallengesEnd(t *testing.T) {
	registry := upstreamtest.New()
	name, way := serve(t, registry)
	tokens := 0
	registry.Change(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/token":
			tokens++
			return false
		case r.Header.Get("Authorization") != "":
			http.Redirect(w, r, "/v2/x"+strings.TrimPrefix(r.URL.Path, "/v2/"), http.StatusFound)
			return true
		}
		return false
	})
	if _, err := newClient(t, upstream.Config{Registry: name, Way: way}).Head(t.Context(), "library/web", "v1"); err == nil {
		t.Error("endless redirects gave a manifest")
	}
	if tokens > 3 {
		t.Errorf("%d tokens were got for one request", tokens)
	}
}
