// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

func TestAnAPIServerThatRefusesIsThere(t *testing.T) {
	t.Parallel()
	for code, there := range map[int]bool{http.StatusOK: true, http.StatusForbidden: true, http.StatusUnauthorized: false, http.StatusInternalServerError: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/version" {
				code = http.StatusNotFound
			}
			w.WriteHeader(code)
		}))
		t.Cleanup(server.Close)
		ask, err := answers(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(t.Context()); (err == nil) != there {
			t.Errorf("%d: %v", code, err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := ask(over); err == nil {
			t.Errorf("%d: it is there though nobody answered in time", code)
		}
	}
}
