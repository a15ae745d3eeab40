// SPDX-License-Identifier: Apache-2.0

package ami

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
	"muster.dev/muster/internal/platform/version"
)

// A machine says by its image which release it runs: its node group takes the image of the cluster's release.
func TestImagesAreOfReleases(t *testing.T) {
	t.Parallel()
	all, next := images(releasetest.List()), releasetest.Next()
	if len(all) != len(All())+1 {
		t.Fatalf("%d images", len(all))
	}
	got, day := all[len(all)-1], released[version.Release]
	if got.Name != "amazon-eks-node-al2023-x86_64-standard-1.37-v"+day || got.Kubernetes != "1.37" || got.ReleaseVersion != "1.37.1-"+day || got.ID == all[0].ID ||
		!strings.Contains(got.Description, "Kubernetes 1.37.1") {
		t.Errorf("%+v", got)
	}
	if id := OfRelease(next); id != got.ID {
		t.Errorf("machines of %s are launched from %q, not from %s", next.Version, id, got.ID)
	}
	if id := OfRelease(release.Default()); id != "" {
		t.Errorf("machines of the default release name the image %s", id)
	}
	for id, want := range map[string]string{got.ID: next.Version, all[0].ID: release.All()[0].Version, "": release.Default().Version, "ami-0123456789abcdef0": release.Default().Version} {
		if found := releaseOf(id, releasetest.List()); found.Version != want {
			t.Errorf("a machine of image %q runs %s, not %s", id, found.Version, want)
		}
	}
}
