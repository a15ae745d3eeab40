// SPDX-License-Identifier: Apache-2.0

package hostagenttest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/image/imagearchive/imagearchivetest"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	web   = "docker.io/library/web:dev"
	other = "docker.io/library/other:dev"
)

// newLoader has images for the clusters blue and green.
func newLoader(t *testing.T, reach Reach) hostagent.Loader {
	t.Helper()
	state := statedir.Dir(t.TempDir())
	for _, cluster := range []string{"blue", "green"} {
		dir := state.Cluster(cluster)
		if err := errors.Join(os.MkdirAll(string(dir), 0o700), os.WriteFile(dir.Record(), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return reach(t, hostagent.New(hostagent.Config{State: state}))
}

// areShown checks which images the machines of a cluster see.
func areShown(t *testing.T, images hostagent.Loader, cluster string, want ...string) {
	t.Helper()
	if got, err := images.Shown(t.Context(), hostagent.Shown{Namespace: cluster}); err != nil || !slices.Equal(got, want) {
		t.Errorf("machines of %s see %v, %v; want %v", cluster, got, err, want)
	}
}

func imagesAreLoaded(t *testing.T, reach Reach) {
	images := newLoader(t, reach)
	areShown(t, images, "blue")
	for range 2 {
		if err := images.Load(t.Context(), hostagent.Load{Namespaces: []string{"blue"}, Image: web}, bytes.NewReader(imagearchivetest.OCI(t, web))); err != nil {
			t.Fatal(err)
		}
	}
	if err := images.Load(t.Context(), hostagent.Load{}, bytes.NewReader(imagearchivetest.OCI(t, other))); err != nil {
		t.Fatal(err)
	}
	areShown(t, images, "blue", other, web)
	areShown(t, images, "green", other)
	entries, err := images.Images(t.Context())
	if err != nil || len(entries) != 2 || entries[0].Name != other || !slices.Equal(entries[1].Namespaces, []string{"blue"}) || entries[1].Size() == 0 || entries[1].Loaded.IsZero() {
		t.Errorf("loaded are %+v, %v", entries, err)
	}
	if err := images.Unload(t.Context(), hostagent.Unload{Names: []string{web}, Namespaces: []string{"blue"}}); err != nil {
		t.Fatal(err)
	}
	areShown(t, images, "blue", other)
	if err := images.Unload(t.Context(), hostagent.Unload{Names: []string{web}}); err == nil || !strings.Contains(err.Error(), web) {
		t.Errorf("Unload of an image that is not loaded: %v", err)
	}
}

func archivesAreRefused(t *testing.T, reach Reach) {
	images, whole := newLoader(t, reach), imagearchivetest.OCI(t, web)
	err := images.Load(t.Context(), hostagent.Load{Image: other}, bytes.NewReader(whole))
	if !errors.Is(err, hostagent.ErrOtherImages) || !strings.Contains(err.Error(), other) {
		t.Errorf("an archive of another image: %v", err)
	}
	for what, archive := range map[string]io.Reader{
		"text":                    strings.NewReader("not an archive"),
		"half an archive":         bytes.NewReader(whole[:len(whole)/2]),
		"an archive that breaks":  io.MultiReader(bytes.NewReader(whole[:1024]), breaking{}),
		"an archive of no images": bytes.NewReader(make([]byte, 1024)),
	} {
		if err := images.Load(t.Context(), hostagent.Load{}, archive); err == nil {
			t.Errorf("%s is loaded", what)
		}
	}
	if entries, err := images.Images(t.Context()); err != nil || len(entries) > 0 {
		t.Errorf("loaded are %+v, %v", entries, err)
	}
}

// breaking is a file that cannot be read.
type breaking struct{}

func (breaking) Read([]byte) (int, error) { return 0, errors.New("the disk is broken") }
