// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// An API server that starts refuses, then answers one path, and then the other.
func TestAnswersWaitsForAllPaths(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		switch len(asked) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	if err := answers(t.Context(), &rest.Config{Host: server.URL}, "/a?limit=1", "/b"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/a", "/a", "/b", "/b"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAnswersEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 3 {
			cancel()
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	if err := answers(ctx, &rest.Config{Host: server.URL}, "/"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
