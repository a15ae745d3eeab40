// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/image/imagearchive"
	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/node/loadedimages"
	"muster.dev/muster/internal/platform/statedir"
)

// addonFiles are what `make addons` made, for the add-ons of one cluster.
type addonFiles struct {
	binDir  string
	cluster statedir.Cluster
	store   *imagestore.Store

	mu   sync.Mutex
	read map[string][]*unstructured.Unstructured // the kinds of add-ons, once they were read
}

// madeAddon is what `make addons` made for an add-on.
type madeAddon struct {
	file, image string // an archive, and the name of the image in it
	repository  string // the same without the version
	kinds       string // a file with the kinds that the add-on brings along
}

var madeAddons = map[string]madeAddon{
	addon.SnapshotController: {addon.SnapshotControllerImage, snapshotControllerImage, snapshotControllerName, addon.SnapshotKinds},
	addon.Traefik:            {addon.TraefikImage, traefikImage, traefikName, addon.GatewayKinds},
}

func (f *addonFiles) path(name string) string {
	return filepath.Join(f.binDir, filepath.FromSlash(name))
}

// has reports whether a file is there.
func (f *addonFiles) has(name string) bool {
	_, err := os.Stat(f.path(name))
	return err == nil
}

// kinds are those that an add-on brings along.
func (f *addonFiles) kinds(name string) ([]*unstructured.Unstructured, error) {
	made, ok := madeAddons[name]
	if !ok {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if kinds := f.read[name]; kinds != nil {
		return kinds, nil
	}
	content, err := os.ReadFile(f.path(made.kinds))
	if err != nil {
		return nil, fmt.Errorf("reading the kinds of add-on %s: %w", name, err)
	}
	var kinds []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		kind := &unstructured.Unstructured{}
		err := decoder.Decode(kind)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && kind.GetKind() != "CustomResourceDefinition" {
			err = fmt.Errorf("it holds a %q, and may hold CustomResourceDefinitions alone", kind.GetKind())
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", made.kinds, err)
		}
		unstructured.RemoveNestedField(kind.Object, "status")
		kinds = append(kinds, kind)
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("reading %s: it holds no kinds", made.kinds)
	}
	if f.read == nil {
		f.read = map[string][]*unstructured.Unstructured{}
	}
	f.read[name] = kinds
	return kinds, nil
}

// load gives the machines of the cluster the image of an add-on. Machines that come later have it, too.
func (f *addonFiles) load(ctx context.Context, name string) error {
	made, ok := madeAddons[name]
	if !ok {
		return nil
	}
	there, err := f.loaded()
	if err != nil || slices.Contains(there, made.image) {
		return err
	}
	ingest, err := f.store.Begin()
	if err != nil {
		return err
	}
	images, err := imagearchive.Read(ctx, f.path(made.file), ingest, ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}, "")
	if err == nil && !slices.ContainsFunc(images, func(image loadedimages.Image) bool { return image.Name == made.image }) {
		err = fmt.Errorf("%s is of another release, without %s: run `make addons`", made.file, made.image)
	}
	if err == nil {
		err = f.store.Add(ctx, ingest, images, []string{f.cluster.Namespace()})
	}
	return errors.Join(err, ingest.End())
}

// unload takes away what load gave the machines, in this release or an earlier one. What people loaded for all clusters stays.
func (f *addonFiles) unload(ctx context.Context, name string) error {
	made, ok := madeAddons[name]
	if !ok {
		return nil
	}
	entries, err := f.store.List()
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range entries {
		forAll := func(other imagestore.Entry) bool { return other.Name == entry.Name && len(other.Namespaces) == 0 }
		if strings.HasPrefix(entry.Name, made.repository) && slices.Contains(entry.Namespaces, f.cluster.Namespace()) && !slices.ContainsFunc(entries, forAll) {
			names = append(names, entry.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return f.store.Remove(ctx, names, []string{f.cluster.Namespace()})
}

// loaded lists the images that the cluster's machines are shown.
func (f *addonFiles) loaded() ([]string, error) {
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
