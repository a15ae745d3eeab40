// SPDX-License-Identifier: Apache-2.0

package authenticator_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/platform/watchretry"
)

// An API server that was just started asks whoever wants custom resources to come again in five seconds. Mappings are
// followed sooner.
func TestMappingsOfAServerThatStarts(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]func(*rest.Config) (cache.ListerWatcher, error){
		"access entries": authenticator.AccessEntries, "IAMIdentityMappings": authenticator.IdentityMappings,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if asked.Add(1) == 1 {
					w.Header().Set("Retry-After", "5")
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			t.Cleanup(server.Close)
			objects, err := source(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w, err := cache.ToListerWatcherWithContext(watchretry.New(objects)).WatchWithContext(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.Stop()
			if took := time.Since(began); took >= 5*time.Second || asked.Load() != 2 { // that the server asks for
				t.Errorf("asked %d times, answered after %s", asked.Load(), took)
			}
		})
	}
}
