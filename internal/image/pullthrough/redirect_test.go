// SPDX-License-Identifier: Apache-2.0

package pullthrough_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"muster.dev/muster/internal/image/pullthroughconfig"
	"muster.dev/muster/internal/image/upstream/upstreamtest"
)

// A redirect opens with a password of dockerConfig only what machines may name anyway: registries of registries.yaml.
func TestRedirectToRegistryOfTheList(t *testing.T) {
	w := newWorld(t)
	target := upstreamtest.New()
	target.Password = "other"
	sum := target.Put("library/web", "v1", "config", "layer")
	var passwords atomic.Int32
	other := httptest.NewTLSServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		if _, _, ok := r.BasicAuth(); ok {
			passwords.Add(1)
		}
		target.ServeHTTP(a, r)
	}))
	t.Cleanup(other.Close)
	w.registry.Change(func(a http.ResponseWriter, r *http.Request) bool {
		http.Redirect(a, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	})
	name := strings.TrimPrefix(other.URL, "https://")
	path := filepath.Join(t.TempDir(), "config.json")
	text := fmt.Sprintf(`{"auths":{%q:{"auth":"bWU6c2VjcmV0"},%q:{"auth":"bWU6b3RoZXI="}}}`, w.name, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.mutex.Lock()
	w.settings.DockerConfig = path
	w.mutex.Unlock()
	w.expect("GET", open, "/v2/library/web/manifests/v1", 403, "no token for you")
	if got := passwords.Load(); got != 0 {
		t.Errorf("a registry that the list does not name was sent %d passwords", got)
	}
	w.mutex.Lock()
	w.settings.Registries = append(w.settings.Registries, pullthroughconfig.Registry{Name: name})
	w.mutex.Unlock()
	w.expect("GET", open, "/v2/library/web/manifests/"+sum.String(), 200, "schemaVersion")
}
