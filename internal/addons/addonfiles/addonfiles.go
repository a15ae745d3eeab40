// SPDX-License-Identifier: Apache-2.0

// Package addonfiles gives add-ons what `make addons` made for them: images, which it loads for the machines of one
// cluster and takes away again, and the Kinds that an add-on brings along. Files that are missing or of another release
// are an error that names `make addons`; images that people loaded for all clusters are never taken away.
package addonfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/image/imagearchive"
	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/node/loadedimages"
	"muster.dev/muster/internal/platform/manifest"
	"muster.dev/muster/internal/platform/statedir"
)

// Files are what `make addons` made, for the add-ons of one cluster. They are safe for use by many at once.
type Files struct {
	catalogue addon.Catalogue

	binDir  string
	cluster statedir.Cluster
	store   *imagestore.Store

	mu   sync.Mutex
	read map[string][]*unstructured.Unstructured // the kinds of add-ons, once they were read
}

// New returns the files in a directory of programs, for a cluster of an account.
func New(state statedir.Dir, cluster statedir.Cluster, binDir string) *Files {
	return &Files{catalogue: catalogue.New(), binDir: binDir, cluster: cluster, store: imagestore.New(state)}
}

func (f *Files) path(name string) string {
	return filepath.Join(f.binDir, filepath.FromSlash(name))
}

// Has reports whether a file of an add-on is there.
func (f *Files) Has(name string) bool {
	_, err := os.Stat(f.path(name))
	return err == nil
}

// Kinds are the CustomResourceDefinitions that an add-on brings along.
func (f *Files) Kinds(name string) ([]*unstructured.Unstructured, error) {
	known, _ := f.catalogue.Find(name)
	if known.Kinds == "" {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if kinds := f.read[name]; kinds != nil {
		return kinds, nil
	}
	content, err := os.ReadFile(f.path(known.Kinds))
	if err != nil {
		return nil, fmt.Errorf("reading the kinds of add-on %s: %w", name, err)
	}
	kinds, err := manifest.Read(known.Kinds, content)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if kind.GetKind() != "CustomResourceDefinition" {
			return nil, fmt.Errorf("reading %s: it holds a %q, and may hold CustomResourceDefinitions alone", known.Kinds, kind.GetKind())
		}
		unstructured.RemoveNestedField(kind.Object, "status")
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("reading %s: it holds no kinds", known.Kinds)
	}
	if f.read == nil {
		f.read = map[string][]*unstructured.Unstructured{}
	}
	f.read[name] = kinds
	return kinds, nil
}

// Load gives the machines of the cluster the image of an add-on; machines that come later have the image, too.
func (f *Files) Load(ctx context.Context, name string) error {
	known, _ := f.catalogue.Find(name)
	if !known.Loaded() {
		return nil
	}
	there, err := f.loaded()
	if err != nil || slices.Contains(there, known.Image) {
		return err
	}
	ingest, err := f.store.Begin()
	if err != nil {
		return err
	}
	images, err := imagearchive.Read(ctx, f.path(known.Archive), ingest, ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}, "")
	if err == nil && !slices.ContainsFunc(images, func(image loadedimages.Image) bool { return image.Name == known.Image }) {
		err = fmt.Errorf("%s is of another release, without %s: run `make addons`", known.Archive, known.Image)
	}
	if err == nil {
		err = f.store.Add(ctx, ingest, images, []string{f.cluster.Namespace()})
	}
	return errors.Join(err, ingest.End())
}

// Unload takes away the image that Load gave the machines, in this release or an earlier one. An image that people
// loaded for all clusters stays.
func (f *Files) Unload(ctx context.Context, name string) error {
	known, _ := f.catalogue.Find(name)
	if !known.Loaded() {
		return nil
	}
	entries, err := f.store.List()
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range entries {
		forAll := func(other imagestore.Entry) bool { return other.Name == entry.Name && len(other.Namespaces) == 0 }
		if strings.HasPrefix(entry.Name, known.Repository()) && slices.Contains(entry.Namespaces, f.cluster.Namespace()) && !slices.ContainsFunc(entries, forAll) {
			names = append(names, entry.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return f.store.Remove(ctx, names, []string{f.cluster.Namespace()})
}

// UnloadAll takes the images of all add-ons away.
func (f *Files) UnloadAll(ctx context.Context) error {
	for _, known := range f.catalogue {
		if err := f.Unload(ctx, known.Name); err != nil {
			return err
		}
	}
	return nil
}

// loaded lists the images that the cluster's machines are shown.
func (f *Files) loaded() ([]string, error) {
	index, _, err := f.store.Shown(f.cluster)
	if err != nil {
		return nil, fmt.Errorf("reading which images the machines have: %w", err)
	}
	var names []string
	for _, image := range index.Images {
		names = append(names, image.Name)
	}
	return names, nil
}
