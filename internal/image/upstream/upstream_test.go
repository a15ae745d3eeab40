// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/image/upstream"
	"muster.dev/muster/internal/image/upstream/upstreamtest"
)

// serve serves by TLS, and returns the server's name and the way to it.
func serve(t *testing.T, handler http.Handler) (string, upstream.Way) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return strings.TrimPrefix(server.URL, "https://"), upstream.Way{Roots: roots, Refuse: func(netip.Addr) error { return nil }}
}

func newClient(t *testing.T, config upstream.Config) *upstream.Client {
	t.Helper()
	c, err := upstream.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// password lets the user "me" into one registry.
func password(of, secret string) func(string) (string, string, error) {
	return func(registry string) (string, string, error) {
		if registry != of {
			return "", "", nil
		}
		return "me", secret, nil
	}
}

func TestPull(t *testing.T) {
	registry := upstreamtest.New()
	cdn, _ := serve(t, registry)
	registry.CDN, registry.Password = "https://"+cdn, "secret"
	name, way := serve(t, registry)
	sum := registry.Put("library/web", "v1", "config", "layer")
	c := newClient(t, upstream.Config{Registry: name, Way: way, Credentials: password(name, "secret")})

	if got, err := c.Head(t.Context(), "library/web", "v1"); got != sum || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	mediaType, content, err := c.Manifest(t.Context(), "library/web", sum.String())
	if mediaType != upstreamtest.ImageType || digest.FromBytes(content) != sum || err != nil {
		t.Errorf("%s %s, %v", mediaType, content, err)
	}
	body, size, err := c.Blob(t.Context(), "library/web", digest.FromString("layer"))
	if err != nil {
		t.Fatal(err)
	}
	content, err = io.ReadAll(body)
	if err = errors.Join(err, body.Close()); string(content) != "layer" || size != 5 || err != nil {
		t.Errorf("%q of %d, %v", content, size, err)
	}
	if got := registry.Asked("GET /token"); got != 1 {
		t.Errorf("%d tokens for one repository", got)
	}
	_, _, err = c.Manifest(t.Context(), "library/web", "v2")
	if status, ok := errors.AsType[*upstream.StatusError](err); !ok || status.Status != 404 || !strings.Contains(err.Error(), "manifest unknown") {
		t.Errorf("%v", err)
	}
	stranger := newClient(t, upstream.Config{Registry: name, Way: way})
	_, err = stranger.Head(t.Context(), "library/web", "v1")
	if status, ok := errors.AsType[*upstream.StatusError](err); !ok || status.Status != 401 || !strings.Contains(err.Error(), "no token for you") {
		t.Errorf("%v", err)
	}
}

// Neither a name, nor a realm, nor a redirect leads to a place that is refused.
func TestRefusedPlaces(t *testing.T) {
	registry := upstreamtest.New()
	name, way := serve(t, registry)
	sum := registry.Put("library/web", "v1", "config", "layer")
	_, port, _ := net.SplitHostPort(name)
	var refusals []string
	way.Refuse = func(to netip.Addr) error {
		if to == netip.MustParseAddr("127.0.0.1") {
			return nil
		}
		refusals = append(refusals, to.String())
		return errors.New("a test refuses it")
	}
	refused := func(what string, err error) {
		t.Helper()
		if no, ok := errors.AsType[*upstream.RefusedError](err); !ok {
			t.Errorf("%s: %v, want a refusal", what, err)
		} else if no.Place == "" || no.Reason == "" {
			t.Errorf("%s: %+v", what, no)
		}
	}
	_, err := newClient(t, upstream.Config{Registry: "127.0.0.2:" + port, Way: way}).Head(t.Context(), "library/web", "v1")
	refused("an address", err)
	for what, to := range map[string]string{"a redirect": "https://127.0.0.3:" + port, "a redirect to http": "http://127.0.0.1:" + port, "metadata": "https://169.254.169.254"} {
		registry.CDN = to
		_, _, err := newClient(t, upstream.Config{Registry: name, Way: way}).Blob(t.Context(), "library/web", sum)
		refused(what, err)
	}
	registry.Change(func(w http.ResponseWriter, q *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://127.0.0.4:`+port+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	_, err = newClient(t, upstream.Config{Registry: name, Way: way}).Head(t.Context(), "library/web", "v1")
	refused("a realm", err)
	slices.Sort(refusals)
	if got := strings.Join(refusals, " "); got != "127.0.0.2 127.0.0.3 127.0.0.4 169.254.169.254" {
		t.Errorf("refused %s", got)
	}
	for _, realm := range []string{"http://127.0.0.1/token", "//x", "https://me:secret@" + name + "/token", "file:///etc/passwd", ""} {
		registry.Change(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		})
		if _, err := newClient(t, upstream.Config{Registry: name, Way: way}).Head(t.Context(), "library/web", "v1"); err == nil || !strings.Contains(err.Error(), "not an https URL") {
			t.Errorf("realm %q: %v", realm, err)
		}
	}
}

// A proxy is asked about public names alone: it finds their addresses by itself.
func TestProxy(t *testing.T) {
	registry := upstreamtest.New()
	name, way := serve(t, registry)
	sum := registry.Put("library/web", "v1", "config", "layer")
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Host)
		to, err := net.Dial("tcp", name)
		if err != nil || r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusOK)
		from, read, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(to, read); _ = to.Close() }() // bytes that the server has read already come first
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	way.Refuse = func(netip.Addr) error { return errors.New("nothing is dialled directly") }
	way.Proxy = func(*url.URL) (*url.URL, error) { return at, nil }
	c := newClient(t, upstream.Config{Registry: "registry.example.com", Way: way}) // the certificate of httptest has it
	if got, err := c.Head(t.Context(), "library/web", "v1"); got != sum || err != nil {
		t.Fatalf("%s, %v", got, err)
	}
	if got := strings.Join(asked, " "); got != "CONNECT registry.example.com:443" {
		t.Errorf("the proxy was asked %q", got)
	}
	asked = nil
	for _, to := range []string{"localhost", "127.0.0.1", "10.0.0.1:443", "metadata.google.internal", "router.lan", "intranet", "0x7f000001", "127.1", "2130706433"} {
		_, err := newClient(t, upstream.Config{Registry: to, Way: way}).Head(t.Context(), "library/web", "v1")
		if _, ok := errors.AsType[*upstream.RefusedError](err); !ok {
			t.Errorf("%s by a proxy: %v", to, err)
		}
	}
	way.NoProxy = "the test says so"
	if _, err := newClient(t, upstream.Config{Registry: "registry.example.com", Way: way}).Head(t.Context(), "library/web", "v1"); err == nil || !strings.Contains(err.Error(), way.NoProxy) {
		t.Errorf("%v", err)
	}
	if len(asked) != 0 {
		t.Errorf("the proxy was asked %q", asked)
	}
}

func TestBounds(t *testing.T) {
	registry := upstreamtest.New()
	name, way := serve(t, registry)
	c := newClient(t, upstream.Config{Registry: name, Way: way})
	for what, test := range map[string]struct{ path, body, want string }{
		"a large manifest":  {"/v2/", strings.Repeat("x", upstream.MaxManifest+1), "the manifest has more than"},
		"no token":          {"/token", `{}`, "none that can be sent"},
		"a token of lines":  {"/token", `{"token":"a\r\nX: y"}`, "none that can be sent"},
		"a token of no use": {"/token", `x`, "not JSON"},
	} {
		registry.Change(func(w http.ResponseWriter, q *http.Request) bool {
			if strings.HasPrefix(q.URL.Path, test.path) {
				_, _ = io.WriteString(w, test.body)
				return true
			}
			return false
		})
		if _, _, err := c.Manifest(t.Context(), "library/web", "v1"); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	registry.Change(func(w http.ResponseWriter, q *http.Request) bool {
		http.Redirect(w, q, q.URL.Path, http.StatusFound)
		return true
	})
	if _, err := c.Head(t.Context(), "library/web", "v1"); err == nil || !strings.Contains(err.Error(), "more than 5 redirects") {
		t.Errorf("%v", err)
	}
}

func TestPassword(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("me:se:cret"))
	for what, c := range map[string]struct{ config, registry, user, password, err string }{
		"docker.io":        {`{"auths":{"https://index.docker.io/v1/":{"auth":"` + auth + `"}}}`, "docker.io", "me", "se:cret", ""},
		"another":          {`{"auths":{"quay.io":{"auth":"` + auth + `"}}}`, "quay.io", "me", "se:cret", ""},
		"none":             {`{"auths":{"quay.io":{"auth":"` + auth + `"}}}`, "ghcr.io", "", "", ""},
		"a name within":    {`{"auths":{"x.quay.io":{"auth":"` + auth + `"}}}`, "quay.io", "", "", ""},
		"empty":            {`{}`, "quay.io", "", "", ""},
		"a store":          {`{"auths":{"quay.io":{}},"credsStore":"desktop"}`, "quay.io", "", "", `credential helper "desktop"`},
		"a helper":         {`{"credHelpers":{"quay.io":"pass"}}`, "quay.io", "", "", `credential helper "pass"`},
		"an identity":      {`{"auths":{"quay.io":{"auth":"` + auth + `","identitytoken":"x"}}}`, "quay.io", "", "", "identity token"},
		"without password": {`{"auths":{"quay.io":{"auth":"bWU="}}}`, "quay.io", "", "", "not the base64 of USER:PASSWORD"},
		"not JSON":         {`me:secret`, "quay.io", "", "", "not the JSON"},
	} {
		user, password, err := upstream.Password([]byte(c.config), c.registry)
		if user != c.user || password != c.password || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q %q %v", what, user, password, err)
		}
		if err != nil && (strings.Contains(err.Error(), "cret") || strings.Contains(err.Error(), auth)) {
			t.Errorf("%s: the error tells a secret: %v", what, err)
		}
	}
}
