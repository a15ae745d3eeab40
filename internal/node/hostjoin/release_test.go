// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"

	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
)

// A kubelet is not newer than its API server.
func TestTheHostRunsTheClustersRelease(t *testing.T) {
	w := newWorld(t) // with programs of the default release
	next, now := releasetest.Next(), release.Default()
	for _, c := range []struct{ programs, asked, want string }{
		{w.programs, now.Version, now.Version},
		{w.programs, "v" + now.Minor() + ".99-eks-1", now.Version},
		{w.programs, "v1.20.1", now.Version},
		{w.programs, "", now.Version},
		{w.programs, next.Version, now.Version},
		{t.TempDir(), next.Version, next.Version}, // it is missing, which is said
	} {
		h := w.host()
		h.Releases, h.Programs = release.List{now, next}, c.programs
		if got := h.releaseFor(c.asked); got.Version != c.want {
			t.Errorf("a node of %q runs %s, not %s", c.asked, got.Version, c.want)
		}
	}
}

// The programs of the cluster's minor are those that the host gets.
func TestJoinTakesTheClustersRelease(t *testing.T) {
	w := newWorld(t)
	next := releasetest.Next()
	for _, name := range []string{"kubernetes", "kubelet", "kube-proxy"} {
		path := next.Program(w.programs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("program "+name+" of "+next.Minor()), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	discovery, ok := w.cluster.Discovery().(*fakediscovery.FakeDiscovery)
	if !ok {
		t.Fatal("the cluster's discovery is not a fake")
	}
	discovery.FakedServerVersion = &version.Info{GitVersion: next.Version}
	if err := w.join(); err != nil {
		t.Fatal(err)
	}
	if got := w.tree()["/usr/local/bin/kubelet"]; !strings.HasSuffix(got, " of "+next.Minor()) {
		t.Errorf("the host's kubelet is %q", got)
	}
}
