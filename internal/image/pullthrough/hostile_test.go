// SPDX-License-Identifier: Apache-2.0

package pullthrough_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/image/upstream/upstreamtest"
	"muster.dev/muster/internal/network/egresspolicy"
)

const indexType = "application/vnd.oci.image.index.v1+json"

// sends has the registry answer each request for a manifest with some content.
func (w *world) sends(mediaType string, content func(tag string) string) {
	w.registry.Change(func(a http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") || r.Header.Get("Authorization") == "" {
			return false
		}
		a.Header().Set("Content-Type", mediaType)
		_, _ = io.WriteString(a, content(filepath.Base(r.URL.Path)))
		return true
	})
}

// The bytes of an image are kept once, whichever registry sent them first: none may say that they are something else.
func TestAmbiguousManifests(t *testing.T) {
	for content, types := range map[string]map[string]int{
		`{"config":{},"layers":[]}`:                  {upstreamtest.ImageType: 200, indexType: 403},
		`{"manifests":[]}`:                           {upstreamtest.ImageType: 403, indexType: 200},
		`{"config":{},"layers":[],"manifests":[]}`:   {upstreamtest.ImageType: 403, indexType: 403},
		`{"config":{},"layers":[],"manifests":null}`: {upstreamtest.ImageType: 200, indexType: 403},
		`{"Layers":[]}`:                              {indexType: 403},
	} {
		for mediaType, status := range types {
			w := newWorld(t)
			w.sends(mediaType, func(string) string { return content })
			w.expect("GET", open, "/v2/library/web/manifests/"+digest.FromString(content).String(), status, "")
			if t.Failed() {
				t.Fatalf("%s as %s", content, mediaType)
			}
		}
	}
}

// Manifests alone do not fill the disk: a registry may have any number of them, without a blob that anybody pulls.
func TestManifestsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.settings.MaxSize.Set(20 << 20)
	filler := strings.Repeat(" ", 4<<20-100)
	w.sends(indexType, func(tag string) string {
		return fmt.Sprintf(`{"manifests":[]%s,"annotations":{"tag":%q}}`, filler, tag)
	})
	for n := range 20 {
		w.expect("GET", open, fmt.Sprint("/v2/library/web/manifests/v", n), 200, "")
	}
	var total int64
	entries, err := os.ReadDir(filepath.Join(w.dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
	}
	if total > 64<<20 {
		t.Errorf("%d manifests with %d bytes are kept", len(entries), total)
	}
}

// containerd shows people why a pull failed if HEAD and the GET that follows are answered with 403, which is told what
// the HEAD was told.
func TestReasonIsShown(t *testing.T) {
	w := newWorld(t)
	w.registry.Change(func(a http.ResponseWriter, _ *http.Request) bool {
		http.Error(a, `{"errors":[{"code":"TOOMANYREQUESTS","message":"no more"}]}`, http.StatusTooManyRequests)
		return true
	})
	const path = "/v2/library/web/manifests/v1"
	for range 2 {
		w.registry.Forget()
		w.expect("HEAD", open, path, 403, "")
		asked := w.registry.All()
		w.expect("GET", open, path, 403, "answers 429")
		if got := w.registry.All(); got != asked {
			t.Errorf("the registry was asked %d times for the words of its answer", got-asked)
		}
		w.registry.Forget()
		w.expect("GET", open, path, 403, "answers 429")
		if w.registry.All() == 0 {
			t.Error("a failure is told twice")
		}
	}
	w.expect("HEAD", open, path, 403, "")
	w.expect("GET", closed, path, 403, closed+" has no way out")
	w.expect("HEAD", open, "/v2/library/web/blobs/"+digest.FromString("x").String(), 429, "")
	w.registry.Change(nil)
	w.expect("HEAD", open, "/v2/library/web/manifests/v9", 404, "")
}

// Machines of two VPCs, at a registry that never answers, keep no third VPC from pulling.
func TestVPCsShareThePulls(t *testing.T) {
	w := newWorld(t)
	const other, third = "vpc-00000000000000003", "vpc-00000000000000004"
	w.set(other, egresspolicy.Policy{Mode: egresspolicy.NAT})
	w.set(third, egresspolicy.Policy{Mode: egresspolicy.NAT})
	w.registry.Put("library/web", "v1", "config", "layer")
	rest := make(chan struct{})
	w.registry.Change(func(a http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v2/hostile/") {
			return false
		}
		<-rest
		http.NotFound(a, r)
		return true
	})
	const each = 40
	var group sync.WaitGroup
	for _, vpc := range []struct {
		id   string
		gets int
	}{{open, 32}, {other, 16}} {
		answers := make(chan int, each)
		for n := range each {
			group.Go(func() {
				answers <- w.ask("GET", vpc.id, "/v2/hostile/x/blobs/"+digest.FromString(fmt.Sprint(n)).String()).Code
			})
		}
		for range each - vpc.gets { // the others wait for the registry
			if got := <-answers; got != http.StatusTooManyRequests {
				t.Errorf("%s: %d", vpc.id, got)
			}
		}
	}
	w.expect("GET", third, "/v2/library/web/blobs/"+digest.FromString("layer").String(), 200, "layer")
	close(rest)
	group.Wait()
}

// A pod that asks and goes away keeps no image from others, and no news of a tag.
func TestAClientThatGoes(t *testing.T) {
	w := newWorld(t)
	w.pull(open, "kept", w.registry.Put("library/web", "kept", "config", "layer"), "layer")
	news := w.registry.Put("library/web", "kept", "config", "news")
	w.registry.Put("library/web", "new", "config", "layer")
	for _, tag := range []string{"new", "kept"} {
		ctx, cancel := context.WithCancel(t.Context())
		w.registry.Change(func(_ http.ResponseWriter, r *http.Request) bool {
			cancel()
			<-r.Context().Done()
			return true
		})
		r := httptest.NewRequestWithContext(ctx, http.MethodHead, "/v2/library/web/manifests/"+tag+"?ns="+w.name, http.NoBody)
		r.Header.Set("Test-VPC", open)
		w.handler.ServeHTTP(httptest.NewRecorder(), r)
		cancel()
		w.registry.Change(nil)
	}
	w.expect("GET", open, "/v2/library/web/manifests/new", 200, "schemaVersion")
	w.pull(open, "kept", news, "news")
}

// The failure of one pod's request is not the answer to another pod's request.
func TestAFailureIsTheClientsOwn(t *testing.T) {
	w := newWorld(t)
	w.registry.Put("library/web", "v1", "config", "layer")
	w.registry.Change(func(a http.ResponseWriter, _ *http.Request) bool {
		a.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/v2/library/web/manifests/v1?ns="+w.name, http.NoBody)
	r.Header.Set("Test-VPC", open)
	r.RemoteAddr = "192.0.2.99:1234"
	w.handler.ServeHTTP(httptest.NewRecorder(), r)
	w.registry.Change(nil)
	w.expect("GET", open, "/v2/library/web/manifests/v1", 200, "schemaVersion")
}
