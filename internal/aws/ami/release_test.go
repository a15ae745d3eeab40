// SPDX-License-Identifier: Apache-2.0

package ami

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
	"muster.dev/muster/internal/platform/version"
)

// A machine says by its image which release it runs: its node group takes the image of the cluster's release.
func TestImagesAreOfReleases(t *testing.T) {
	t.Parallel()
	list, next := releasetest.List(), releasetest.Next()
	all := images(list)
	if len(all) != len(All())+1 {
		t.Fatalf("%d images", len(all))
	}
	got, day := all[len(all)-1], released[version.Release]
	if got.Name != "amazon-eks-node-al2023-x86_64-standard-1.99-v"+day || got.Kubernetes != "1.99" || got.ReleaseVersion != "1.99.1-"+day || got.ID == all[0].ID ||
		!strings.Contains(got.Description, "Kubernetes 1.99.1") {
		t.Errorf("%+v", got)
	}
	if id := OfRelease(next); id != got.ID {
		t.Errorf("machines of %s are launched from %q, not from %s", next.Version, id, got.ID)
	}
	if id, want := OfRelease(release.Default()), all[slices.IndexFunc(list, func(r release.Release) bool { return r.Default })].ID; id != want {
		t.Errorf("machines of the default release are launched from %q, not from %s", id, want)
	}
	earlier, first := of(release.Release{Version: next.Earlier[0]}, version.Release).ID, "v1.36."
	for id, want := range map[string]string{
		got.ID: next.Version, earlier: next.Version, all[0].ID: list[0].Version, "": first, "ami-0123456789abcdef0": first,
		"ami-fb5f1b62ce26eafef": first, // of v1.36.3, which machines and templates of before name
	} {
		if found := releaseOf(id, list); !strings.HasPrefix(found.Version, want) {
			t.Errorf("a machine of image %q runs %s, not %s", id, found.Version, want)
		}
	}
	got.ID, got.Deprecated = earlier, got.Created
	if found, ok := find(earlier, list); !ok || found != got {
		t.Errorf("the image of an earlier patch is %+v", found)
	}
	if found := deprecated(list); !slices.Contains(found, got) || slices.ContainsFunc(found, func(i Image) bool { return slices.Contains(all, i) || i.Deprecated.IsZero() }) {
		t.Errorf("images of earlier patches are %+v", found)
	}
	if _, ok := find("ami-0123456789abcdef0", list); ok {
		t.Error("an id that nothing has is found")
	}
	if id := OfMachine(&v1alpha1.Machine{}); id != OfRelease(list.First()) {
		t.Errorf("a machine that names no image has %s", id)
	}
}
