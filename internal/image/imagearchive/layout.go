// SPDX-License-Identifier: Apache-2.0

package imagearchive

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"muster.dev/muster/internal/node/loadedimages"
)

// Media types that Docker has for what OCI has, too.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// nameAnnotation is where containerd and Docker keep an image's whole name; ocispec.AnnotationRefName often has the tag
// alone.
const nameAnnotation = "io.containerd.image.name"

// maxDepth bounds indexes in indexes.
const maxDepth = 4

// ofLayout finds the images of an OCI image layout.
func (a *archive) ofLayout(file entry, name string) ([]loadedimages.Image, error) {
	content, err := a.document(file.digest)
	if err != nil {
		return nil, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(content, &index); err != nil {
		return nil, fmt.Errorf("reading %s: %w", ocispec.ImageIndexFile, err)
	}
	var images []loadedimages.Image
	for _, descriptor := range index.Manifests {
		if descriptor.Platform != nil && descriptor.Platform.OS == "unknown" { // an attestation
			continue
		}
		whole, err := nameOf(descriptor.Annotations[nameAnnotation], descriptor.Annotations[ocispec.AnnotationRefName], name, len(index.Manifests) == 1)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", descriptor.Digest, err)
		}
		image, err := a.image(descriptor, 0)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", whole, err)
		}
		image.Name = whole
		images = append(images, image)
	}
	return images, nil
}

// image finds the image of a manifest, or of the one for this platform in an index.
func (a *archive) image(descriptor ocispec.Descriptor, depth int) (loadedimages.Image, error) {
	if err := a.has(descriptor); err != nil {
		return loadedimages.Image{}, err
	}
	switch descriptor.MediaType {
	case ocispec.MediaTypeImageManifest, dockerManifest:
		return a.manifest(descriptor)
	case ocispec.MediaTypeImageIndex, dockerList:
	default:
		return loadedimages.Image{}, fmt.Errorf("blob %s has the media type %q, which is not an image's", descriptor.Digest, descriptor.MediaType)
	}
	if depth >= maxDepth {
		return loadedimages.Image{}, fmt.Errorf("more than %d indexes are in one another", maxDepth)
	}
	content, err := a.document(descriptor.Digest)
	if err != nil {
		return loadedimages.Image{}, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(content, &index); err != nil {
		return loadedimages.Image{}, fmt.Errorf("reading index %s: %w", descriptor.Digest, err)
	}
	var others []string
	for _, child := range index.Manifests {
		if child.Platform == nil || a.runs(*child.Platform) {
			return a.image(child, depth+1)
		}
		others = append(others, child.Platform.OS+"/"+child.Platform.Architecture)
	}
	return loadedimages.Image{}, fmt.Errorf("it is for %s, and machines are %s/%s", strings.Join(slices.Compact(others), ", "), a.platform.OS, a.platform.Architecture)
}

// runs reports whether machines run images of a platform.
func (a *archive) runs(p ocispec.Platform) bool {
	return p.OS == a.platform.OS && p.Architecture == a.platform.Architecture
}

// has checks that a blob is there, as a descriptor says.
func (a *archive) has(descriptor ocispec.Descriptor) error {
	if err := descriptor.Digest.Validate(); err != nil || descriptor.Digest.Algorithm() != digest.SHA256 {
		return fmt.Errorf("blob %q: the digest must be a SHA-256", descriptor.Digest)
	}
	size, ok := a.sizes[descriptor.Digest]
	switch {
	case !ok && len(descriptor.URLs) > 0:
		return fmt.Errorf("blob %s is to be fetched from elsewhere: such layers cannot be loaded", descriptor.Digest)
	case !ok:
		return fmt.Errorf("blob %s is missing", descriptor.Digest)
	case size != descriptor.Size:
		return fmt.Errorf("blob %s has %d bytes and should have %d", descriptor.Digest, size, descriptor.Size)
	}
	return nil
}

// manifest finds the image of a manifest.
func (a *archive) manifest(descriptor ocispec.Descriptor) (loadedimages.Image, error) {
	content, err := a.document(descriptor.Digest)
	if err != nil {
		return loadedimages.Image{}, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return loadedimages.Image{}, fmt.Errorf("reading manifest %s: %w", descriptor.Digest, err)
	}
	for _, blob := range append([]ocispec.Descriptor{m.Config}, m.Layers...) {
		if err := a.has(blob); err != nil {
			return loadedimages.Image{}, err
		}
	}
	config, configured, err := a.config(m.Config)
	if err != nil {
		return loadedimages.Image{}, err
	}
	if len(config.RootFS.DiffIDs) != len(m.Layers) {
		return loadedimages.Image{}, fmt.Errorf("manifest %s has %d layers, and its configuration has %d", descriptor.Digest, len(m.Layers), len(config.RootFS.DiffIDs))
	}
	if configured.Digest != m.Config.Digest {
		if descriptor, err = a.rewrite(descriptor, content, map[string]any{"config": configured}); err != nil {
			return loadedimages.Image{}, err
		}
	}
	return loadedimages.Image{Manifest: plain(descriptor), Config: plain(configured), Layers: plains(m.Layers)}, nil
}

// plain is a descriptor without what is of no use later.
func plain(d ocispec.Descriptor) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}

func plains(all []ocispec.Descriptor) []ocispec.Descriptor {
	out := make([]ocispec.Descriptor, 0, len(all))
	for _, d := range all {
		out = append(out, plain(d))
	}
	return out
}
