// SPDX-License-Identifier: Apache-2.0

// Package upstreamtest is a public registry in memory, for tests: it hands out tokens as Docker's does, and counts what
// it is asked.
package upstreamtest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
)

// ImageType is the media type of its images.
const ImageType = "application/vnd.oci.image.manifest.v1+json"

// Registry answers pulls of anybody with a token for the repository.
type Registry struct {
	// CDN is where blobs are, as https://HOST; empty for the registry itself.
	CDN string
	// Password is what Basic authentication of the user "me" needs for a token; empty lets anybody have one.
	Password string

	mutex     sync.Mutex
	blobs     map[digest.Digest][]byte
	manifests map[string]digest.Digest // by REPOSITORY:TAG
	asked     map[string]int
	change    func(http.ResponseWriter, *http.Request) bool
}

// New makes a registry.
func New() *Registry {
	return &Registry{blobs: map[digest.Digest][]byte{}, manifests: map[string]digest.Digest{}, asked: map[string]int{}}
}

// Put makes an image of a configuration and layers, and returns its digest.
func (r *Registry) Put(repository, tag, config string, layers ...string) digest.Digest {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	put := func(content string) string {
		sum := digest.FromString(content)
		r.blobs[sum] = []byte(content)
		return fmt.Sprintf(`"digest":%q,"size":%d`, sum, len(content))
	}
	text := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.oci.image.config.v1+json",%s},"layers":[`, ImageType, put(config))
	described := make([]string, 0, len(layers))
	for _, layer := range layers {
		described = append(described, `{"mediaType":"application/vnd.oci.image.layer.v1.tar",`+put(layer)+`}`)
	}
	text += strings.Join(described, ",") + "]}"
	sum := digest.FromString(text)
	r.blobs[sum] = []byte(text)
	r.manifests[repository+":"+tag] = sum
	return sum
}

// Corrupt has a blob have another content.
func (r *Registry) Corrupt(sum digest.Digest, content string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.blobs[sum] = []byte(content)
}

// Change has a function look at each request first; true means that it has answered.
func (r *Registry) Change(fn func(http.ResponseWriter, *http.Request) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.change = fn
}

// Asked is how often something was asked for, as in "GET /v2/library/web/manifests/v1", since the last Forget.
func (r *Registry) Asked(what string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.asked[what]
}

// All is how many requests there were since the last Forget.
func (r *Registry) All() (n int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, times := range r.asked {
		n += times
	}
	return n
}

// Forget forgets what was asked.
func (r *Registry) Forget() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	clear(r.asked)
}

// ServeHTTP answers a request.
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mutex.Lock()
	r.asked[q.Method+" "+q.URL.Path]++
	change := r.change
	r.mutex.Unlock()
	if change != nil && change(w, q) {
		return
	}
	switch {
	case q.URL.Path == "/token":
		r.token(w, q)
	case strings.HasPrefix(q.URL.Path, "/cdn/"):
		if q.Header.Get("Authorization") != "" {
			http.Error(w, "a password came to the CDN", http.StatusBadRequest)
			return
		}
		r.send(w, q, digest.Digest(strings.TrimPrefix(q.URL.Path, "/cdn/")), "application/octet-stream")
	default:
		r.pull(w, q)
	}
}

func (r *Registry) token(w http.ResponseWriter, q *http.Request) {
	user, password, _ := q.BasicAuth()
	if r.Password != "" && (user != "me" || password != r.Password) || q.URL.Query().Get("service") != "registry.test" {
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"no token for you"}]}`, http.StatusUnauthorized)
		return
	}
	_, _ = fmt.Fprintf(w, `{"token":%q,"expires_in":300}`, "for."+q.URL.Query().Get("scope")) //nolint:gosec // G705: no browser reads it
}

func (r *Registry) pull(w http.ResponseWriter, q *http.Request) {
	parts := strings.Split(strings.TrimPrefix(q.URL.Path, "/v2/"), "/")
	if len(parts) < 3 {
		http.NotFound(w, q)
		return
	}
	n := len(parts)
	repository, kind, reference := strings.Join(parts[:n-2], "/"), parts[n-2], parts[n-1]
	scope := "repository:" + repository + ":pull"
	if q.Header.Get("Authorization") != "Bearer for."+scope {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="https://%s/token",service="registry.test",scope=%q`, q.Host, scope))
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"log in"}]}`, http.StatusUnauthorized)
		return
	}
	sum := digest.Digest(reference)
	if kind == "blobs" {
		if r.CDN != "" {
			http.Redirect(w, q, r.CDN+"/cdn/"+reference, http.StatusTemporaryRedirect) //nolint:gosec // G710: as registries do
			return
		}
		r.send(w, q, sum, "application/octet-stream")
		return
	}
	if !strings.Contains(reference, ":") {
		r.mutex.Lock()
		sum = r.manifests[repository+":"+reference]
		r.mutex.Unlock()
	}
	r.send(w, q, sum, ImageType)
}

func (r *Registry) send(w http.ResponseWriter, q *http.Request, sum digest.Digest, mediaType string) {
	r.mutex.Lock()
	content, ok := r.blobs[sum]
	r.mutex.Unlock()
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`))
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", sum.String())
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	if q.Method != http.MethodHead {
		_, _ = w.Write(content)
	}
}
