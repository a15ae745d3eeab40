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
	now, empty := release.Default(), t.TempDir()
	for _, c := range []struct{ programs, asked, want string }{
		{w.programs, now.Version, now.Version},
		{w.programs, "v" + now.Minor() + ".99-eks-1", now.Version},
		{w.programs, "v1.37.2", now.Version}, // whose own are not there
		{w.programs, "v1.39.0", now.Version},
		{w.programs, "", now.Version},
		{w.programs, "v0.0.0-master", now.Version},
		{w.programs, "v1.35.1", "v1.35.8"}, // they are missing, which is told; the default would be newer
		{empty, "v1.37.0", "v1.37.2"},
		{empty, "v1.38.0", "v1.37.2"},
		{w.programs, "v1.33.13", ""},
		{w.programs, "v1.20.1", ""},
		{w.programs, "v1.41.0", ""},
	} {
		h := w.host()
		h.Releases, h.Programs = release.All(), c.programs
		got, err := h.releaseFor(c.asked)
		if got.Version != c.want || (err != nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.asked+": a kubelet may not be newer, and at most 3 minors older, and Muster has 1.34, ") {
			t.Errorf("a node of %q runs %s, not %s: %v", c.asked, got.Version, c.want, err)
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
