// SPDX-License-Identifier: Apache-2.0

// Package addonfiles gives add-ons what `make addons` or a target of their own made for them: images, which it loads for the machines of one
// cluster and takes away again, and the Kinds that an add-on brings along. Files that are missing or of another release
// are an error that names the target; images that people loaded for all clusters are never taken away.
package addonfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/platform/manifest"
)

// Files are what was made for the add-ons of one cluster. They are safe for use by many at once.
type Files struct {
	catalogue addon.Catalogue

	binDir    string
	namespace string
	images    hostagent.Loader

	mu   sync.Mutex
	read map[string][]*unstructured.Unstructured // the kinds of add-ons, once they were read
}

// New returns the files in a directory of programs, for the cluster with a namespace, whose images are loaded on a host.
func New(images hostagent.Loader, namespace, binDir string) *Files {
	return &Files{catalogue: catalogue.New(), binDir: binDir, namespace: namespace, images: images}
}

func (f *Files) path(name string) string {
	return filepath.Join(f.binDir, filepath.FromSlash(name))
}

// KarpenterUnbuilt says what is to be done before Karpenter can run in a control plane, whose programs are below a
// directory; empty if nothing is.
func KarpenterUnbuilt(binDir string) string {
	return karpenter.Unbuilt((&Files{binDir: binDir}).Has)
}

// Has reports whether a file of an add-on is there.
func (f *Files) Has(name string) bool {
	_, err := os.Stat(f.path(name))
	return err == nil
}

// Kinds are the CustomResourceDefinitions that an add-on brings along. They are the caller's own: applied, an object is what
// the API server made of it, and is not taken a second time.
func (f *Files) Kinds(name string) ([]*unstructured.Unstructured, error) {
	known, _ := f.catalogue.Find(name)
	if known.Kinds == "" {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if kinds := f.read[name]; kinds != nil {
		return copied(kinds), nil
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
	return copied(kinds), nil
}

func copied(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		all = append(all, object.DeepCopy())
	}
	return all
}

// Load gives the machines of the cluster the image of an add-on; machines that come later have the image, too.
func (f *Files) Load(ctx context.Context, name string) error {
	known, _ := f.catalogue.Find(name)
	if !known.Loaded() {
		return nil
	}
	there, err := f.loaded(ctx)
	if err != nil || slices.Contains(there, known.Image) {
		return err
	}
	path := f.path(known.Archive)
	archive, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	err = f.images.Load(ctx, hostagent.Load{Namespaces: []string{f.namespace}, Image: known.Image}, archive)
	switch {
	case errors.Is(err, hostagent.ErrOtherImages):
		return fmt.Errorf("%s is of another release, without %s: %s", known.Archive, known.Image, known.Build.By)
	case err != nil:
		return fmt.Errorf("reading images of %s: %w", path, err)
	}
	return nil
}

// Unload takes away the image that Load gave the machines, in this release or an earlier one. An image that people
// loaded for all clusters stays.
func (f *Files) Unload(ctx context.Context, name string) error {
	known, _ := f.catalogue.Find(name)
	if !known.Loaded() {
		return nil
	}
	entries, err := f.images.Images(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range entries {
		forAll := func(other imagestore.Entry) bool { return other.Name == entry.Name && len(other.Namespaces) == 0 }
		if strings.HasPrefix(entry.Name, known.Repository()) && slices.Contains(entry.Namespaces, f.namespace) && !slices.ContainsFunc(entries, forAll) {
			names = append(names, entry.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return f.images.Unload(ctx, hostagent.Unload{Names: names, Namespaces: []string{f.namespace}})
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
func (f *Files) loaded(ctx context.Context) ([]string, error) {
	names, err := f.images.Shown(ctx, hostagent.Shown{Namespace: f.namespace})
	if err != nil {
		return nil, fmt.Errorf("reading which images the machines have: %w", err)
	}
	return names, nil
}
