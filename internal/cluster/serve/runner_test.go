// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/plane/runner/runnertest"
	"muster.dev/muster/internal/platform/statedir"
)

// A component that does not start reaches the status of its cluster, and a caller that waits for it.
func TestComponentThatDoesNotStart(t *testing.T) {
	t.Parallel()
	place := runnertest.NewPlace()
	place.Break(component.Etcd, "it does not listen at etcd.example:2379")
	plane := place.New(t.Context())
	specs := []component.Spec{{Name: component.Etcd, Path: "/bin/etcd"}, {Name: component.APIServer, Path: "/bin/kube-apiserver", After: []string{component.Etcd}}}
	if err := plane.Apply(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
	dir := statedir.Dir(t.TempDir()).Cluster("demo")
	h := &hosted{dir: dir, runner: plane}
	hosts := clusterHosts{Service: &Service{hosted: map[statedir.Cluster]*hosted{dir: h}}}

	if served, message := hosts.State("demo"); served || message != "starting 2 components: etcd, kube-apiserver" {
		t.Errorf("served: %v, %q", served, message)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := h.runner.WaitReady(ctx, component.APIServer, component.Etcd)
	if err == nil || !strings.Contains(err.Error(), "etcd is Starting: it does not listen at etcd.example:2379") {
		t.Errorf("the caller that waits learns %v", err)
	}

	place.Mend(component.Etcd)
	if err := h.runner.WaitReady(t.Context(), component.APIServer); err != nil {
		t.Fatal(err)
	}
	if _, message := hosts.State("demo"); message != "" {
		t.Errorf("it serves, and the status says %q", message)
	}
	place.Break(component.Etcd, "it answers 500")
	waitUnready(t, h)
	if _, message := hosts.State("demo"); message != "etcd does not answer: it answers 500" {
		t.Errorf("etcd is broken, and the status says %q", message)
	}
}

func waitUnready(t *testing.T, h *hosted) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); h.components()[0].State != runner.Unready; {
		if time.Now().After(deadline) {
			t.Fatalf("etcd is %+v", h.components()[0])
		}
		select {
		case <-t.Context().Done():
		case <-time.After(time.Millisecond):
		}
	}
}
