// SPDX-License-Identifier: Apache-2.0

package loadedimages

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Dir is where a machine sees the images of its cluster.
const Dir = "/opt/muster/images"

// IndexFile is the name of the index in the directory.
const IndexFile = "index.json"

// MaxIndex bounds an index, in bytes: that of some ten thousand images.
const MaxIndex = 32 << 20

// Image is one image for one platform.
type Image struct {
	// Name is the whole name with a tag, as in docker.io/library/web:dev.
	Name string `json:"name"`
	// Manifest, Config and Layers are its blobs.
	Manifest ocispec.Descriptor   `json:"manifest"`
	Config   ocispec.Descriptor   `json:"config"`
	Layers   []ocispec.Descriptor `json:"layers,omitempty"`
}

// Blobs are all blobs of the image, each once: the manifest last.
func (i Image) Blobs() []ocispec.Descriptor {
	var all []ocispec.Descriptor
	seen := map[digest.Digest]bool{}
	for _, blob := range append(append([]ocispec.Descriptor{i.Config}, i.Layers...), i.Manifest) {
		if !seen[blob.Digest] {
			seen[blob.Digest] = true
			all = append(all, blob)
		}
	}
	return all
}

// Size is the size of all blobs, in bytes.
func (i Image) Size() int64 {
	var size int64
	for _, blob := range i.Blobs() {
		size += blob.Size
	}
	return size
}

// Index is the images of a cluster.
type Index struct {
	Images []Image `json:"images"`
}

// Encode is the index as a file, and what a machine calls it in its report.
func (i Index) Encode() (content []byte, version string, err error) {
	content, err = json.MarshalIndent(i, "", "  ")
	if err != nil {
		return nil, "", fmt.Errorf("encoding the index of images: %w", err)
	}
	content = append(content, '\n')
	return content, versionOf(content), nil
}

// versionOf names the content of an index.
func versionOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read reads the index in a directory. A directory without one has no images. An index that holds anything that cannot
// be is an error.
func Read(dir string) (index Index, version string, err error) {
	file, err := os.Open(filepath.Join(dir, IndexFile))
	if errors.Is(err, os.ErrNotExist) {
		return Index{}, versionOf(nil), nil
	}
	if err != nil {
		return Index{}, "", fmt.Errorf("reading the index of images: %w", err)
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, MaxIndex+1))
	if err != nil {
		return Index{}, "", fmt.Errorf("reading the index of images: %w", err)
	}
	index, err = Parse(content)
	return index, versionOf(content), err
}

// Parse reads an index.
func Parse(content []byte) (Index, error) {
	if len(content) > MaxIndex {
		return Index{}, fmt.Errorf("reading the index of images: it is longer than %d bytes", MaxIndex)
	}
	var index Index
	if err := json.Unmarshal(content, &index); err != nil {
		return Index{}, fmt.Errorf("reading the index of images: %w", err)
	}
	for _, image := range index.Images {
		if image.Name == "" {
			return Index{}, errors.New("reading the index of images: an image has no name")
		}
		for _, blob := range image.Blobs() {
			// The hash becomes the name of a file.
			if err := blob.Digest.Validate(); err != nil || blob.Digest.Algorithm() != digest.SHA256 || blob.Size < 0 {
				return Index{}, fmt.Errorf("reading the index of images: image %q has a blob %q of %d bytes: it must be named by a SHA-256 digest", image.Name, blob.Digest, blob.Size)
			}
		}
	}
	return index, nil
}

// BlobPath is where a blob is in a directory.
func BlobPath(dir string, blob digest.Digest) string {
	return filepath.Join(dir, ocispec.ImageBlobsDir, blob.Algorithm().String(), blob.Encoded())
}
