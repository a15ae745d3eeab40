// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/platform/leaderlease"
)

// leaseServer keeps one Lease, as the API server does, and counts what else is written.
type leaseServer struct {
	mu     sync.Mutex
	holder string // "" before it was created
	taken  bool   // by another: what the first one writes conflicts
	writes []string
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	switch leases := "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"; {
	case !strings.HasPrefix(r.URL.Path, leases):
		if r.Method != http.MethodGet {
			s.writes = append(s.writes, r.Method+" "+r.URL.Path)
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`)
	case r.Method == http.MethodGet && s.holder == "":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`)
	case r.Method == http.MethodGet:
		now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": accessLease, "namespace": "muster-system", "resourceVersion": "3"},
			"spec": map[string]any{"holderIdentity": s.holder, "leaseDurationSeconds": 600, "acquireTime": now, "renewTime": now},
		})
	case s.taken:
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Conflict","code":409}`)
	default:
		s.holder = "this"
		w.Header().Set("Content-Type", r.Header.Get("Content-Type")) // which may be protobuf
		_, _ = w.Write(body)
	}
}

// A leader that was stopped for long finds its lease taken, and does not try to get it back while it acts on: the first
// look ends it.
func TestALeaderEndsWhenAnotherHasItsLease(t *testing.T) {
	t.Parallel()
	server := &leaseServer{}
	api := httptest.NewServer(server)
	t.Cleanup(func() { api.CloseClientConnections(); api.Close() })
	log := slog.New(slog.DiscardHandler)
	leads, stopped := make(chan struct{}), make(chan struct{})
	l := leading{
		cluster: &rest.Config{Host: api.URL}, namespace: "muster-system", identity: "this", tenure: leaderlease.NewTenure(time.Now, log), logger: log,
		// Nothing of what happens is due to the first two.
		times: leaseTimes{duration: 10 * time.Minute, renew: 9 * time.Minute, retry: 50 * time.Millisecond},
		status: func(ctx context.Context) error {
			close(leads)
			<-ctx.Done()
			close(stopped)
			return nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = l.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	<-leads
	server.mu.Lock()
	server.holder, server.taken = "another", true
	server.mu.Unlock()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Fatal("it leads on")
	}
	<-ended
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.holder != "another" {
		t.Errorf("the lease is %q's now", server.holder)
	}
}

// Before that look nothing is written: what was stopped longer than the lease lasts runs for a moment as if no time had
// passed.
func TestNothingIsWrittenOnALeaseThatRanOut(t *testing.T) {
	t.Parallel()
	server := &leaseServer{}
	api := httptest.NewServer(server)
	t.Cleanup(func() { api.CloseClientConnections(); api.Close() })
	now := time.Now()
	tenure := leaderlease.NewTenure(func() time.Time { return now }, slog.New(slog.DiscardHandler))
	tenure.Renewed(now.Add(15 * time.Second))
	status, err := authenticator.StatusOf(tenure.Fence(&rest.Config{Host: api.URL}))
	if err != nil {
		t.Fatal(err)
	}
	entry := &unstructured.Unstructured{Object: map[string]any{"apiVersion": accessv1alpha1.GroupVersion.String(), "kind": "AccessEntry", "metadata": map[string]any{"name": "e"}}}
	write := func() error {
		return status(t.Context(), accessv1alpha1.GroupVersion.WithResource("accessentries"), entry)
	}
	if err := write(); err == nil || len(server.writes) != 1 {
		t.Fatalf("%v, wrote %q", err, server.writes)
	}
	now = now.Add(20 * time.Second)
	if err := write(); !errors.Is(err, leaderlease.ErrLapsed) || len(server.writes) != 1 {
		t.Errorf("%v, wrote %q", err, server.writes)
	}
}
