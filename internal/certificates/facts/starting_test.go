// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/platform/watchretry"
)

// An API server that was just started asks whoever wants custom resources to come again in five seconds. Machines are
// followed sooner.
func TestMachinesOfAServerThatStarts(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]func(*rest.Config) (cache.ListerWatcher, error){
		"Muster's":      facts.Machines,
		"Cluster API's": func(c *rest.Config) (cache.ListerWatcher, error) { return facts.ClusterAPIMachines(c, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Query().Get("watch") == "":
					_, _ = w.Write([]byte(`{"kind":"APIGroup","apiVersion":"v1","name":"cluster.x-k8s.io","versions":[{"groupVersion":"cluster.x-k8s.io/v1beta2","version":"v1beta2"}]}`))
				case asked.Add(1) == 1:
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
