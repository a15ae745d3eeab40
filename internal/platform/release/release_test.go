// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
)

func TestReleasesAreWhatIsBuilt(t *testing.T) {
	t.Parallel()
	minors, defaults := map[string]bool{}, 0
	for _, r := range release.All() {
		if !regexp.MustCompile(`^v1\.[0-9]+\.[0-9]+$`).MatchString(r.Version) || minors[r.Minor()] {
			t.Errorf("%s is no version, or the second of its minor", r.Version)
		}
		minors[r.Minor()] = true
		if r.Default {
			defaults++
		}
		for program := range r.Flags {
			if !slices.Contains(r.PlanePrograms(), r.Program("", program)) {
				t.Errorf("%s has flags of %s, which is not a program of a control plane", r.Version, program)
			}
		}
		path := filepath.Join("..", "..", "..", "kubernetes", r.Folder, "go.mod")
		module, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^\s*(require )?k8s\.io/kubernetes ` + regexp.QuoteMeta(r.Version) + `$`).Match(module) {
			t.Errorf("%s does not require k8s.io/kubernetes %s", path, r.Version)
		}
	}
	if defaults != 1 {
		t.Errorf("%d releases are the default", defaults)
	}
}

func TestLookUp(t *testing.T) {
	t.Parallel()
	list := releasetest.List()
	for asked, want := range map[string]string{"": release.Default().Version, release.Default().Version: release.Default().Version, "v1.37.1": "v1.37.1"} {
		if found, err := list.Of(asked); err != nil || found.Version != want {
			t.Errorf("%q is %s: %v", asked, found.Version, err)
		}
	}
	if found, err := list.OfMinor("1.37"); err != nil || found.Version != "v1.37.1" {
		t.Errorf("1.37 is %s: %v", found.Version, err)
	}
	for asked, want := range map[string]string{
		"v1.99.0": "there are no programs of Kubernetes v1.99.0: write v1.36.4 or v1.37.1, or leave it out",
		"1.36":    "there are no programs of Kubernetes 1.36: write v1.36.4 or v1.37.1, or leave it out",
	} {
		if _, err := list.Of(asked); err == nil || err.Error() != want {
			t.Errorf("%s: %v", asked, err)
		}
	}
	if _, err := list.OfMinor("1.99"); err == nil || err.Error() != `unsupported Kubernetes version "1.99": there is 1.36 or 1.37` {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"1.36", "1.37"}, list.Minors()); diff != "" {
		t.Error(diff)
	}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	next := releasetest.Next()
	got := slices.Concat(next.PlanePrograms(), next.MachinePrograms(), []string{next.Program("/opt/muster/bin", "kubelet"), next.Program("/opt/muster/bin", "containerd")})
	want := "1.37/kube-apiserver 1.37/kube-controller-manager 1.37/kube-scheduler 1.37/kube-proxy 1.37/kubelet 1.37/kubelet-config-check " +
		"/opt/muster/bin/1.37/kubelet /opt/muster/bin/containerd"
	if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
		t.Error(diff)
	}
	if got := (release.Release{}).Program("/opt/muster/bin", "kubelet"); got != "/opt/muster/bin/kubelet" {
		t.Error(got)
	}
}
