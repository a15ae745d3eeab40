// SPDX-License-Identifier: Apache-2.0

package addonfiles

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/addons/coredns"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/addons/snapshotcontroller"
	"muster.dev/muster/internal/addons/traefik"
	"muster.dev/muster/internal/image/imagearchive/imagearchivetest"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/platform/statedir"
)

func writeImage(t *testing.T, path, name string) {
	t.Helper()
	writeFile(t, path, string(imagearchivetest.OCI(t, name)))
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newAddonFiles are those of two clusters of one account.
func newAddonFiles(t *testing.T) (blue, green *Files) {
	t.Helper()
	state, bin := statedir.Dir(t.TempDir()), t.TempDir()
	var both []*Files
	for _, name := range []string{"blue", "green"} {
		f := New(hostagent.New(hostagent.Config{State: state}), name, bin)
		writeFile(t, state.Cluster(name).Record(), "{}")
		both = append(both, f)
	}
	return both[0], both[1]
}

func (f *Files) mustBeLoaded(t *testing.T, want ...string) {
	t.Helper()
	if got, err := f.loaded(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("the machines of %s have %v, want %v; %v", f.namespace, got, want, err)
	}
}

func TestImageOfAnAddon(t *testing.T) {
	t.Parallel()
	blue, green := newAddonFiles(t)
	if err := blue.Load(t.Context(), traefik.Name); err == nil || !strings.Contains(err.Error(), "traefik.tar") {
		t.Errorf("what nobody built is loaded: %v", err)
	}
	writeImage(t, blue.path(traefik.Addon().Archive), traefik.Addon().Repository()+"v0.0.1")
	if err := blue.Load(t.Context(), traefik.Name); err == nil || !strings.Contains(err.Error(), "run `make addons`") {
		t.Errorf("another release's is loaded: %v", err)
	}
	blue.mustBeLoaded(t)
	writeImage(t, blue.path(traefik.Addon().Archive), traefik.Addon().Image)
	for range 2 { // and every ten seconds from then on
		if err := blue.Load(t.Context(), traefik.Name); err != nil {
			t.Fatal(err)
		}
	}
	blue.mustBeLoaded(t, traefik.Addon().Image)
	green.mustBeLoaded(t)
	if entries, err := blue.images.Images(t.Context()); err != nil || len(entries) != 1 {
		t.Errorf("%d images are loaded: %v", len(entries), err)
	}
	if err := blue.Load(t.Context(), coredns.Name); err != nil {
		t.Error(err)
	}
	if err := green.Load(t.Context(), traefik.Name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := blue.Unload(t.Context(), traefik.Name); err != nil {
			t.Fatal(err)
		}
	}
	blue.mustBeLoaded(t)
	green.mustBeLoaded(t, traefik.Addon().Image)
	if err := green.Unload(t.Context(), coredns.Name); err != nil {
		t.Fatal(err)
	}
	green.mustBeLoaded(t, traefik.Addon().Image)
}

// Images that people loaded for all clusters are theirs.
func TestImageThatPeopleLoaded(t *testing.T) {
	t.Parallel()
	blue, _ := newAddonFiles(t)
	writeImage(t, blue.path(traefik.Addon().Archive), traefik.Addon().Image)
	if err := blue.Load(t.Context(), traefik.Name); err != nil {
		t.Fatal(err)
	}
	if err := blue.images.Load(t.Context(), hostagent.Load{}, bytes.NewReader(imagearchivetest.OCI(t, traefik.Addon().Image))); err != nil {
		t.Fatal(err)
	}
	if err := blue.Unload(t.Context(), traefik.Name); err != nil {
		t.Errorf("the add-on could not be deleted: %v", err)
	}
	blue.mustBeLoaded(t, traefik.Addon().Image)
}

func TestKindsOfTheGatewayAPI(t *testing.T) {
	t.Parallel()
	const crd = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s.gateway.networking.k8s.io}\nstatus: {conditions: []}\n"
	for name, c := range map[string]struct{ content, want string }{
		"two":     {fmt.Sprintf(crd+crd, "gateways", "httproutes"), ""},
		"other":   {"---\nkind: ClusterRole\n", `it holds a "ClusterRole"`},
		"no YAML": {"---\n{", "reading addons/gateway-api.yaml"},
		"nothing": {"", "it holds no kinds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := newAddonFiles(t)
			if _, err := f.Kinds(traefik.Name); err == nil {
				t.Error("there are kinds without the file")
			}
			writeFile(t, f.path(traefik.Addon().Kinds), c.content)
			kinds, err := f.Kinds(traefik.Name)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if err != nil {
				return
			}
			if len(kinds) != 2 || kinds[1].GetName() != "httproutes.gateway.networking.k8s.io" || kinds[0].Object["status"] != nil {
				t.Errorf("the kinds are %v", kinds)
			}
			kinds[0].SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "muster"}})
			if again, err := f.Kinds(traefik.Name); err != nil || again[0].GetManagedFields() != nil {
				t.Errorf("the kinds have what an earlier caller's became: %v, %v", again, err)
			}
			if kinds, err := f.Kinds(coredns.Name); err != nil || kinds != nil {
				t.Errorf("CoreDNS brings %v along: %v", kinds, err)
			}
		})
	}
}

// Each add-on has an image and kinds of its own.
func TestFilesOfEachAddon(t *testing.T) {
	t.Parallel()
	const crd = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s}\n"
	blue, _ := newAddonFiles(t)
	for _, made := range blue.catalogue {
		if !made.Loaded() {
			continue
		}
		name := made.Name
		writeImage(t, blue.path(made.Archive), made.Image)
		writeFile(t, blue.path(made.Kinds), fmt.Sprintf(crd, name))
		if err := blue.Load(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if kinds, err := blue.Kinds(name); err != nil || len(kinds) != 1 || kinds[0].GetName() != name {
			t.Errorf("%s brings %v along, %v", name, kinds, err)
		}
	}
	blue.mustBeLoaded(t, karpenter.Addon().Image, snapshotcontroller.Addon().Image, traefik.Addon().Image)
	if err := blue.Unload(t.Context(), traefik.Name); err != nil {
		t.Fatal(err)
	}
	blue.mustBeLoaded(t, karpenter.Addon().Image, snapshotcontroller.Addon().Image)
	if kinds, err := blue.Kinds(snapshotcontroller.Name); err != nil || kinds[0].GetName() != snapshotcontroller.Name {
		t.Errorf("the kinds, read again: %v, %v", kinds, err)
	}
	if err := blue.UnloadAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	blue.mustBeLoaded(t)
}
