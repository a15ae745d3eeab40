// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// containerd takes an image's whole name from its own annotation; the specified one would hold the tag alone.
const nameAnnotation = "io.containerd.image.name"

// archive is an OCI image layout in the making. Images share the layers that they have in common, so that a machine
// unpacks each of them once.
type archive struct {
	dir    string // a directory of its own, for blobs
	images []ocispec.Descriptor
	blobs  []ocispec.Descriptor // in the order in which they were added
}

// layer adds a layer, written as a tar. It is not compressed: it goes no further than this host.
func (a *archive) layer(write func(*tar.Writer) error) (layer ocispec.Descriptor, err error) {
	file, err := os.CreateTemp(a.dir, "layer-")
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := digest.Canonical.Digester()
	packed := tar.NewWriter(io.MultiWriter(file, sum.Hash()))
	if err := errors.Join(write(packed), packed.Close()); err != nil {
		return ocispec.Descriptor{}, err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	layer = ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: sum.Digest(), Size: size}
	return layer, a.add(layer, file.Name())
}

// add puts a file in place as a blob.
func (a *archive) add(blob ocispec.Descriptor, path string) error {
	if !slices.ContainsFunc(a.blobs, func(known ocispec.Descriptor) bool { return known.Digest == blob.Digest }) {
		a.blobs = append(a.blobs, blob)
	}
	return os.Rename(path, filepath.Join(a.dir, blob.Digest.Encoded()))
}

// document adds a value as a blob.
func (a *archive) document(mediaType string, value any) (ocispec.Descriptor, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	path := filepath.Join(a.dir, "document")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return ocispec.Descriptor{}, err
	}
	blob := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	return blob, a.add(blob, path)
}

// image adds an image of those layers, the lowest first, under a whole name.
func (a *archive) image(name string, config ocispec.ImageConfig, layers []ocispec.Descriptor) error {
	whole := ocispec.Image{
		Platform: ocispec.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config:   config,
		RootFS:   ocispec.RootFS{Type: "layers"},
	}
	for _, layer := range layers {
		whole.RootFS.DiffIDs = append(whole.RootFS.DiffIDs, layer.Digest)
	}
	configured, err := a.document(ocispec.MediaTypeImageConfig, whole)
	if err != nil {
		return err
	}
	manifest, err := a.document(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: configured, Layers: layers,
	})
	if err != nil {
		return err
	}
	manifest.Annotations = map[string]string{nameAnnotation: name}
	a.images = append(a.images, manifest)
	return nil
}

// index lists the images.
func (a *archive) index() ([]byte, error) {
	return json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: a.images,
	})
}

// write packs the layout as one tar, the form in which `ctr images import` takes it.
func (a *archive) write(path string) (err error) {
	file, err := os.CreateTemp(a.dir, "archive-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed := tar.NewWriter(file)
	index, err := a.index()
	if err != nil {
		return err
	}
	layout, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		content []byte
	}{{ocispec.ImageLayoutFile, layout}, {ocispec.ImageIndexFile, index}} {
		if err := put(packed, part.name, int64(len(part.content)), bytes.NewReader(part.content)); err != nil {
			return err
		}
	}
	for _, blob := range a.blobs {
		if err := a.putBlob(packed, blob); err != nil {
			return fmt.Errorf("packing blob %s: %w", blob.Digest, err)
		}
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func (a *archive) putBlob(packed *tar.Writer, blob ocispec.Descriptor) error {
	content, err := os.Open(filepath.Join(a.dir, blob.Digest.Encoded()))
	if err != nil {
		return err
	}
	defer content.Close()
	name := filepath.Join(ocispec.ImageBlobsDir, blob.Digest.Algorithm().String(), blob.Digest.Encoded())
	return put(packed, name, blob.Size, content)
}

func put(packed *tar.Writer, name string, size int64, content io.Reader) error {
	if err := packed.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(packed, content)
	return err
}
