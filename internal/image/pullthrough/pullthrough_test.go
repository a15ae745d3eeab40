// SPDX-License-Identifier: Apache-2.0

package pullthrough_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/internal/image/pulledstore"
	"muster.dev/muster/internal/image/pullthrough"
	"muster.dev/muster/internal/image/pullthroughconfig"
	"muster.dev/muster/internal/image/upstream/upstreamtest"
	"muster.dev/muster/internal/network/egresspolicy"
)

const (
	open   = "vpc-00000000000000001"
	closed = "vpc-00000000000000002"
	own    = "000000000000.dkr.ecr.us-east-1.amazonaws.com"
)

type world struct {
	t        *testing.T
	registry *upstreamtest.Registry
	server   *httptest.Server
	name     string
	dir      string
	handler  http.Handler

	mutex    sync.Mutex
	settings pullthrough.Settings
	policies map[string]egresspolicy.Policy
	broken   error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, registry: upstreamtest.New(), dir: t.TempDir()}
	w.server = httptest.NewTLSServer(w.registry)
	t.Cleanup(w.server.Close)
	w.name = strings.TrimPrefix(w.server.URL, "https://")
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	size := resource.MustParse("1Gi")
	w.settings.Config = pullthroughconfig.Config{Registries: []pullthroughconfig.Registry{{Name: w.name, CertificateAuthority: authority}}, MaxSize: &size}
	w.policies = map[string]egresspolicy.Policy{open: {Mode: egresspolicy.NAT}, closed: {}}
	w.start()
	return w
}

// start makes a handler, as the process does when it starts.
func (w *world) start() {
	w.t.Helper()
	store, err := pulledstore.Open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	w.handler, err = pullthrough.New(ctx, pullthrough.Config{
		Store: store, Own: own, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Settings: func() (pullthrough.Settings, error) {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			return w.settings, w.broken
		},
		Egress: func(vpc string) (pullthrough.Egress, error) {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			policy, ok := w.policies[vpc]
			if !ok {
				return pullthrough.Egress{}, errors.New("there is no such VPC")
			}
			return pullthrough.Egress{Policy: policy}, nil
		},
		VPC: func(r *http.Request) string { return r.Header.Get("Test-VPC") },
		Refuse: func(e pullthrough.Egress, to netip.Addr) error {
			if len(e.Policy.Denied) > 0 || to != netip.MustParseAddr("127.0.0.1") {
				return errors.New("a test denies it")
			}
			return nil
		},
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) set(vpc string, policy egresspolicy.Policy) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.policies[vpc] = policy
}

func (w *world) ask(method, vpc, path string) *httptest.ResponseRecorder {
	if !strings.Contains(path, "?") {
		path += "?ns=" + w.name
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, http.NoBody)
	r.Header.Set("Test-VPC", vpc)
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

func (w *world) expect(method, vpc, path string, status int, has string) {
	w.t.Helper()
	if got := w.ask(method, vpc, path); got.Code != status || !strings.Contains(got.Body.String(), has) {
		w.t.Errorf("%s %s of %s: %d %s, want %d %s", method, path, vpc, got.Code, got.Body, status, has)
	}
}

// pull does what containerd does for an image.
func (w *world) pull(vpc, tag string, sum digest.Digest, blobs ...string) {
	w.t.Helper()
	head := w.ask("HEAD", vpc, "/v2/library/web/manifests/"+tag)
	if got := head.Header().Get("Docker-Content-Digest"); head.Code != 200 || got != sum.String() || head.Header().Get("Content-Type") != upstreamtest.ImageType {
		w.t.Errorf("%s leads to %q, want %s: %d", tag, got, sum, head.Code)
	}
	w.expect("GET", vpc, "/v2/library/web/manifests/"+sum.String(), 200, "schemaVersion")
	for _, blob := range blobs {
		got := w.ask("GET", vpc, "/v2/library/web/blobs/"+digest.FromString(blob).String())
		if got.Code != 200 || got.Body.String() != blob {
			w.t.Errorf("blob %.20q: %d %.100s", blob, got.Code, got.Body)
		}
	}
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // it polls with a deadline
		if time.Now().After(end) {
			w.t.Fatalf("%s: not in time", what)
		}
	}
}

// Images that were pulled once can be had without their registry, by machines of every VPC and after a restart, with
// layers that no machine asked for.
func TestOffline(t *testing.T) {
	w := newWorld(t)
	sum := w.registry.Put("library/web", "v1", "config", "layer", "another layer")
	w.pull(open, "v1", sum, "config", "layer")
	another := digest.FromString("another layer").String()
	w.eventually("the image is whole", func() bool { return w.registry.Asked("GET /v2/library/web/blobs/"+another) > 0 })
	w.eventually("the layer is kept", func() bool { _, err := os.Stat(filepath.Join(w.dir, "blobs", another[7:])); return err == nil })
	w.registry.Forget()
	w.pull(open, "v1", sum, "config", "layer", "another layer")
	if got := w.registry.All(); got != 1 || w.registry.Asked("HEAD /v2/library/web/manifests/v1") != 1 {
		t.Errorf("the registry was asked %d times for what is there", got)
	}
	w.pull(closed, "v1", sum, "config", "layer", "another layer")
	if got := w.registry.All(); got != 1 {
		t.Errorf("the registry was asked for a VPC without a way out")
	}
	w.server.Close()
	began := time.Now()
	w.pull(open, "v1", sum, "config", "layer", "another layer")
	w.start()
	w.pull(open, "v1", sum, "config", "layer", "another layer")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("without the registry it took %s", took)
	}
	w.expect("GET", open, "/v2/library/web/manifests/v2", 403, "UNAVAILABLE")
}

func TestTagMoves(t *testing.T) {
	w := newWorld(t)
	first := w.registry.Put("library/web", "latest", "config", "layer")
	w.pull(open, "latest", first, "layer")
	second := w.registry.Put("library/web", "latest", "config", "other")
	w.pull(open, "latest", second, "other")
	w.registry.Change(func(a http.ResponseWriter, _ *http.Request) bool {
		a.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	w.registry.Put("library/web", "latest", "config", "third")
	w.pull(open, "latest", second, "other")
	w.expect("GET", open, "/v2/library/web/manifests/v9", 403, "answers 429")
	w.start() // it forgets that the registry could not be had
	w.registry.Change(func(a http.ResponseWriter, _ *http.Request) bool { a.WriteHeader(http.StatusNotFound); return true })
	w.expect("GET", open, "/v2/library/web/manifests/latest", 404, "MANIFEST_UNKNOWN")
}

func TestRefused(t *testing.T) {
	w := newWorld(t)
	sum := w.registry.Put("library/web", "v1", "config", "layer").String()
	ns := "?ns=" + w.name
	for _, c := range []struct {
		method, vpc, path string
		status            int
		has               string
	}{
		{"GET", closed, "/v2/library/web/manifests/v1", 403, closed + " has no way out"},
		{"HEAD", closed, "/v2/library/web/manifests/v1", 403, ""},
		{"GET", closed, "/v2/library/web/manifests/" + sum, 403, "has no way out"},
		{"GET", closed, "/v2/library/web/blobs/" + sum, 403, "has no way out"},
		{"GET", "vpc-00000000000000009", "/v2/library/web/manifests/v1", 403, "reading what may leave"},
		{"GET", "", "/v2/library/web/manifests/v1", 403, "only machines"},
		{"GET", open, "/v2/library/web/manifests/v1?ns=registry.example.com", 403, "registries.yaml"},
		{"GET", open, "/v2/library/web/manifests/v1?ns=169.254.169.254", 403, "registries.yaml"},
		{"GET", open, "/v2/library/web/manifests/v1" + ns + "&ns=" + own, 400, "twice"},
		{"PUT", open, "/v2/library/web/manifests/v1", 405, "only be pulled"},
		{"POST", open, "/v2/library/web/blobs/uploads/", 405, "only be pulled"},
		{"GET", open, "/v2/library/web/tags/list", 404, "only be pulled"},
		{"GET", open, "/v2/", 404, "only be pulled"},
		{"GET", open, "/v2/../../etc/manifests/v1", 400, "NAME_INVALID"},
		{"GET", open, "/v2/Web/manifests/v1", 400, "NAME_INVALID"},
		{"GET", open, "/v2/a@sha256:0/manifests/v1", 400, "NAME_INVALID"},
		{"GET", open, "/v2/web/manifests/..", 400, "TAG_INVALID"},
		{"GET", open, "/v2/web/blobs/v1", 400, "TAG_INVALID"},
		{"GET", open, "/v2/web/blobs/sha256:..", 400, "DIGEST_INVALID"},
		{"GET", open, "/v2/web/manifests/v1?ns=" + own, 418, ""},
		{"PUT", open, "/v2/web/manifests/v1?x=y", 418, ""},
		{"GET", open, "/v2/web/manifests/v1?ns=%zz", 418, ""},
		{"GET", open, "/v2/library/nothing/manifests/v1", 404, "404 Not Found"},
	} {
		w.expect(c.method, c.vpc, c.path, c.status, c.has)
	}
	w.set(open, egresspolicy.Policy{Mode: egresspolicy.NAT, Denied: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	w.expect("GET", open, "/v2/library/web/manifests/v1", 403, "a test denies it")
	w.set(open, egresspolicy.Policy{Mode: egresspolicy.NAT})
	w.mutex.Lock()
	w.settings.DockerConfig = filepath.Join(t.TempDir(), "config.json")
	w.mutex.Unlock()
	w.expect("GET", open, "/v2/library/web/manifests/v1", 403, "dockerConfig")
	w.broken = errors.New("a test breaks it")
	w.expect("GET", open, "/v2/library/web/manifests/v1", 403, "UNAVAILABLE")
}

// Content without its digest is given to nobody as a whole, and not kept.
func TestOtherContent(t *testing.T) {
	w := newWorld(t)
	layer := strings.Repeat("layer", 1000)
	sum := w.registry.Put("library/web", "v1", "config", layer)
	of := digest.FromString(layer)
	w.registry.Corrupt(of, strings.Repeat("other", 1000))
	if got := w.ask("GET", open, "/v2/library/web/blobs/"+of.String()); got.Code == 200 && got.Body.Len() >= len(layer) {
		t.Errorf("%d bytes of another content were served", got.Body.Len())
	}
	w.registry.Corrupt(sum, `{"schemaVersion":2}`)
	w.expect("GET", open, "/v2/library/web/manifests/"+sum.String(), 403, "the registry sent something else")
	w.expect("GET", closed, "/v2/library/web/blobs/"+of.String(), 403, "was not pulled before")
	w.expect("GET", closed, "/v2/library/web/manifests/"+sum.String(), 403, "was not pulled before")
}

// Many that want a blob at once are one pull, and each gets it while it comes.
func TestOnePull(t *testing.T) {
	w := newWorld(t)
	layer := strings.Repeat("0123456789", 100<<10)
	w.registry.Put("library/web", "v1", "config", layer)
	path := "/v2/library/web/blobs/" + digest.FromString(layer).String()
	half, rest := make(chan struct{}), make(chan struct{})
	w.registry.Change(func(a http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path || r.Header.Get("Authorization") == "" {
			return false
		}
		a.Header().Set("Content-Length", "1024000")
		_, _ = io.WriteString(a, layer[:512000])
		_ = http.NewResponseController(a).Flush()
		close(half)
		<-rest
		_, _ = io.WriteString(a, layer[512000:])
		return true
	})
	front := httptest.NewServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		r.Header.Set("Test-VPC", open)
		w.handler.ServeHTTP(a, r)
	}))
	t.Cleanup(front.Close)
	var group sync.WaitGroup
	var early sync.WaitGroup
	for range 8 {
		early.Add(1)
		group.Go(func() {
			response, err := http.Get(front.URL + path + "?ns=" + w.name)
			if err != nil {
				t.Error(err)
				early.Done()
				return
			}
			defer func() { _ = response.Body.Close() }()
			first := make([]byte, 256<<10)
			_, err = io.ReadFull(response.Body, first)
			early.Done()
			got, more := io.ReadAll(response.Body)
			if err = errors.Join(err, more); err != nil || string(first)+string(got) != layer || response.ContentLength != 1024000 {
				t.Errorf("%d and %d bytes of %d: %v", len(first), len(got), response.ContentLength, err)
			}
		})
	}
	<-half
	early.Wait() // all have had a part before the registry has sent the whole
	close(rest)
	group.Wait()
	if got := w.registry.Asked("GET " + path); got != 2 { // the first without a token
		t.Errorf("the registry was asked %d times", got)
	}
}

// A pull ends when its VPC loses its way out, and leaves nothing behind.
func TestWayOutCloses(t *testing.T) {
	w := newWorld(t)
	layer := strings.Repeat("x", 1<<20)
	w.registry.Put("library/web", "v1", "config", layer)
	sum := digest.FromString(layer)
	w.registry.Change(func(a http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, sum.String()) || r.Header.Get("Authorization") == "" {
			return false
		}
		a.Header().Set("Content-Length", "1048576")
		for i := 0; i < 1<<20 && r.Context().Err() == nil; i += 1 << 10 {
			_, _ = io.WriteString(a, layer[:1<<10])
			_ = http.NewResponseController(a).Flush()
			if i == 1<<10 {
				w.set(open, egresspolicy.Policy{})
			}
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a slow registry
		}
		return true
	})
	began := time.Now()
	got := w.ask("GET", open, "/v2/library/web/blobs/"+sum.String())
	if took := time.Since(began); took > 5*time.Second || got.Body.Len() > 512<<10 {
		t.Errorf("after %s there are %d bytes", took, got.Body.Len())
	}
	if left, err := os.ReadDir(filepath.Join(w.dir, "partial")); len(left) != 0 || err != nil {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestBound(t *testing.T) {
	w := newWorld(t)
	small := resource.MustParse("1000")
	w.settings.MaxSize = &small
	w.registry.Put("library/web", "v1", "config", strings.Repeat("x", 2000))
	w.expect("GET", open, "/v2/library/web/blobs/"+digest.FromString(strings.Repeat("x", 2000)).String(), 507, "maxSize")
	oldest := digest.FromString(strings.Repeat("a", 400))
	for _, name := range []string{"a", "b", "c"} {
		layer := strings.Repeat(name, 400)
		w.registry.Put("library/web", name, "config", layer)
		w.expect("GET", open, "/v2/library/web/blobs/"+digest.FromString(layer).String(), 200, layer)
		if name == "b" { // the file system's clock goes in steps of milliseconds
			before := time.Now().Add(-time.Hour)
			if err := os.Chtimes(filepath.Join(w.dir, "blobs", oldest.Encoded()), before, before); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.eventually("the oldest goes", func() bool { // to ask for it would make it the newest
		_, err := os.Stat(filepath.Join(w.dir, "blobs", oldest.Encoded()))
		return errors.Is(err, fs.ErrNotExist)
	})
	w.expect("GET", closed, "/v2/library/web/blobs/"+oldest.String(), 403, "has no way out")
	w.expect("GET", closed, "/v2/library/web/blobs/"+digest.FromString(strings.Repeat("c", 400)).String(), 200, "ccc")
}

func FuzzPath(f *testing.F) {
	f.Add("/v2/library/web/manifests/v1")
	f.Add("/v2/library/web/blobs/sha256:" + strings.Repeat("0", 64))
	f.Add("/v2/../manifests/..")
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?# ") {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+path+"?ns=a.io", http.NoBody)
		if err != nil {
			return
		}
		w := &world{t: t, dir: t.TempDir(), policies: map[string]egresspolicy.Policy{closed: {}}}
		size := resource.MustParse("1Gi")
		w.settings.Config = pullthroughconfig.Config{Registries: []pullthroughconfig.Registry{{Name: "a.io"}}, MaxSize: &size}
		w.start()
		r.Header.Set("Test-VPC", closed)
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, r)
		if answer.Code < 400 {
			t.Errorf("%s: %d", path, answer.Code)
		}
		if left, err := os.ReadDir(filepath.Join(w.dir, "tags")); len(left) != 0 || err != nil {
			t.Errorf("%s has left %v", path, left)
		}
	})
}
