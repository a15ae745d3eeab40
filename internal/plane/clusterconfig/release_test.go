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
	list := releasetest.List()
	for _, c := range []struct{ runs, recorded, wanted, next, says string }{
		{"1.36", "1.36", "", "v1.36.", ""}, // whatever the default is
		{"1.36", "1.36", "1.36", "v1.36.", ""},
		{"1.36", "", "", "v1.36.", ""},
		{"1.36", "", "v1.36.3", "v1.36.", ""},
		{"1.99", "1.99", "v1.99.0", "v1.99.1", ""},
		{"1.36", "1.36", "1.37", "v1.37.", ""},
		{"1.36", "1.37", "1.36", "v1.36.", ""}, // before the API server of 1.37 serves, or if it never does
		{"1.36", "1.37", "", "v1.37.", ""},
		{"1.34", "1.34", "1.36", "", "spec.version: the control plane runs 1.34, and is upgraded by one minor at a time: 1.35 comes next, and 1.36 after that"},
		{"1.37", "1.36", "1.36", "v1.36.", ""},
		{"1.37", "1.37", "1.36", "v1.36.", ""},
		{"1.37", "1.37", "1.34", "", "spec.version: the control plane runs 1.37, and is taken back by one minor at most: to 1.36, not to 1.34"},
		{"1.37", "1.37", "1.35", "", "spec.version: the control plane runs 1.37, and is taken back by one minor at most: to 1.36, not to 1.35"},
		{"1.36", "1.36", "1.98", "", `spec.version: unsupported Kubernetes version "1.98": there is`},
		{"1.36", "1.98", "", "", `spec.version: unsupported Kubernetes version "1.98": there is`}, // of a later Muster
	} {
		runs, err := list.OfMinor(c.runs)
		if err != nil {
			t.Fatal(err)
		}
		next, err := nextRelease(runs, c.recorded, c.wanted, list)
		switch {
		case c.says == "" && (err != nil || !strings.HasPrefix(next.Version, c.next)):
			t.Errorf("%+v is %s: %v", c, next.Version, err)
		case c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)):
			t.Errorf("%+v: %v", c, err)
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
