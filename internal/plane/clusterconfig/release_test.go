// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
)

func TestNextRelease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ recorded, wanted, next, says string }{
		{"1.99", "", "v1.99.1", ""}, // of Muster's clusters with no version, whatever the default is
		{"1.99", "1.99", "v1.99.1", ""},
		{"1.99", "v1.99.0", "v1.99.1", ""},
		{"v1.99.0", "v1.99.1", "v1.99.1", ""},
		{"", "", "v1.36.", ""},
		{"", "v1.36.3", "v1.36.", ""},
		{"", "1.99", "", "spec.version: the cluster runs 1.36, and cannot be taken to 1.99 yet: write 1.36, or make a new cluster"},
		{"1.99", "1.36", "", "spec.version: the cluster runs 1.99, and cannot be taken to 1.36 yet: write 1.99"},
		{"1.99", "1.98", "", `spec.version: unsupported Kubernetes version "1.98": there is`},
		{"1.98", "", "", `spec.version: unsupported Kubernetes version "1.98": there is`}, // of a later Muster
	} {
		next, err := nextRelease(c.recorded, c.wanted, releasetest.List())
		switch {
		case c.says == "" && (err != nil || !strings.HasPrefix(next.Version, c.next)):
			t.Errorf("from %q to %q is %s: %v", c.recorded, c.wanted, next.Version, err)
		case c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)):
			t.Errorf("from %q to %q: %v, want %q", c.recorded, c.wanted, err, c.says)
		}
	}
}

// A cluster keeps the minor that was the default when it was made.
func TestTheMinorIsWrittenDown(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{"": release.Default().Minor(), "1.37": "1.37", release.All()[0].Version: release.All()[0].Minor()} {
		wanted, path := Default(1, v1alpha1.ProviderLocal), filepath.Join(t.TempDir(), "record")
		wanted.Cluster.Spec.Version = asked
		if made, err := SaveNew(path, wanted); err != nil || !made {
			t.Fatalf("%v, %v", made, err)
		}
		saved, err := Read(path)
		if err != nil || saved.Cluster.Spec.Version != want || wanted.Cluster.Spec.Version != asked {
			t.Errorf("asked for %q, the record has %q: %v", asked, saved.Cluster.Spec.Version, err)
		}
	}
	wanted := Default(1, v1alpha1.ProviderLocal)
	wanted.Cluster.Spec.Version = "1.1"
	if made, err := SaveNew(filepath.Join(t.TempDir(), "record"), wanted); err == nil || made {
		t.Error("a version that there is not is recorded")
	}
}
