// SPDX-License-Identifier: Apache-2.0

package takedown

import (
	"context"
	"slices"
	"testing"

	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner/runnertest"
	"muster.dev/muster/internal/platform/statedir"
)

// TestStopEndsInOrder ends what an earlier runner started: the service first, and etcd after the API servers.
func TestStopEndsInOrder(t *testing.T) {
	place := runnertest.NewPlace()
	ctx, end := context.WithCancel(t.Context())
	earlier := place.New(ctx)
	if err := earlier.Apply(t.Context(), []component.Spec{
		{Name: component.Etcd, Cluster: "blue"},
		{Name: component.APIServer, Cluster: "blue"},
		{Name: component.Scheduler, Cluster: "blue"},
		{Name: component.Management},
		{Name: guard.ProcessServe},
		{Name: component.Simulator, Cluster: "blue"},
		{Name: guard.ProcessGuard},
	}); err != nil {
		t.Fatal(err)
	}
	end()
	var told []string
	count := 0
	if err := Stop(t.Context(), statedir.Dir(t.TempDir()), place.New(t.Context()), func(what string, n int) {
		told = append(told, what)
		count += n
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"service", "controllers", "API servers", "everything else"}; !slices.Equal(told, want) || count != 7 {
		t.Errorf("told of %q, %d in all", told, count)
	}
	of := component.ProcessPrefix("blue")
	want := []string{
		guard.ProcessServe, guard.ProcessGuard, of + component.Scheduler, of + component.Simulator, of + component.APIServer, component.Management, of + component.Etcd,
	}
	if got := place.Ends(); !slices.Equal(got, want) {
		t.Errorf("ended %q, want %q", got, want)
	}
}
