// SPDX-License-Identifier: Apache-2.0

package imagearchive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"muster.dev/muster/internal/node/loadedimages"
)

// saved is an image of manifest.json in an archive of `docker save`.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// ofDocker finds the images of an archive of `docker save`, and makes the manifests that it does not have.
func (a *archive) ofDocker(file entry, name string) ([]loadedimages.Image, error) {
	content, err := a.document(file.digest)
	if err != nil {
		return nil, err
	}
	var all []saved
	if err := json.Unmarshal(content, &all); err != nil {
		return nil, fmt.Errorf("reading manifest.json: %w", err)
	}
	var images []loadedimages.Image
	for _, one := range all {
		image, err := a.saved(one)
		if err != nil {
			return nil, fmt.Errorf("image %q: %w", append(one.RepoTags, one.Config)[0], err)
		}
		if len(one.RepoTags) == 0 {
			one.RepoTags = []string{""}
		}
		for _, tag := range one.RepoTags {
			if image.Name, err = nameOf(tag, "", name, len(all) == 1 && len(one.RepoTags) == 1); err != nil {
				return nil, fmt.Errorf("image %q: %w", one.Config, err)
			}
			images = append(images, image)
		}
	}
	return images, nil
}

func (a *archive) saved(one saved) (loadedimages.Image, error) {
	configured, ok := a.find(one.Config)
	if !ok {
		return loadedimages.Image{}, fmt.Errorf("its configuration %q is missing", one.Config)
	}
	config, described, err := a.config(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageConfig, Digest: configured.digest, Size: configured.size})
	if err != nil {
		return loadedimages.Image{}, err
	}
	if len(config.RootFS.DiffIDs) != len(one.Layers) {
		return loadedimages.Image{}, fmt.Errorf("it has %d layers, and its configuration has %d", len(one.Layers), len(config.RootFS.DiffIDs))
	}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: described,
		Layers: make([]ocispec.Descriptor, 0, len(one.Layers)),
	}
	for n, name := range one.Layers {
		layer, ok := a.find(name)
		if !ok {
			return loadedimages.Image{}, fmt.Errorf("its layer %q is missing", name)
		}
		kind, err := a.layerType(layer.digest)
		if err != nil {
			return loadedimages.Image{}, err
		}
		if kind == ocispec.MediaTypeImageLayer && layer.digest != config.RootFS.DiffIDs[n] {
			return loadedimages.Image{}, fmt.Errorf("its layer %q has the digest %s, and its configuration says %s: the archive is damaged", name, layer.digest, config.RootFS.DiffIDs[n])
		}
		manifest.Layers = append(manifest.Layers, ocispec.Descriptor{MediaType: kind, Digest: layer.digest, Size: layer.size})
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		return loadedimages.Image{}, err
	}
	sum, size, err := a.blobs.Add(bytes.NewReader(content))
	if err != nil {
		return loadedimages.Image{}, err
	}
	return loadedimages.Image{
		Manifest: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: sum, Size: size}, Config: manifest.Config, Layers: manifest.Layers,
	}, nil
}

// layerType finds out whether a layer is compressed.
func (a *archive) layerType(sum digest.Digest) (string, error) {
	file, err := a.blobs.Open(sum)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	magic := make([]byte, 4)
	n, err := io.ReadFull(file, magic)
	switch {
	case err != nil && n == 0:
		return "", fmt.Errorf("reading layer %s: %w", sum, err)
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return ocispec.MediaTypeImageLayerGzip, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return ocispec.MediaTypeImageLayerZstd, nil
	}
	return ocispec.MediaTypeImageLayer, nil
}
