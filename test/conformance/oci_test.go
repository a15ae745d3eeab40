// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// unpack returns the files of an archive by name.
func unpack(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	packed, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	found := map[string][]byte{}
	for reader := tar.NewReader(packed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := found[header.Name]; twice {
			t.Errorf("the archive has %s twice", header.Name)
		}
		if found[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

// blob reads a blob of an archive as JSON. The blob's name, size and content must agree.
func blob(t *testing.T, content map[string][]byte, d ocispec.Descriptor, into any) {
	t.Helper()
	text := content[path.Join("blobs", "sha256", d.Digest.Encoded())]
	if int64(len(text)) != d.Size || digest.FromBytes(text) != d.Digest {
		t.Fatalf("blob %s has %d bytes and is %s, want %d", d.Digest, len(text), digest.FromBytes(text), d.Size)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func TestArchive(t *testing.T) {
	a := &archive{dir: t.TempDir()}
	base, err := a.layer(files(file{name: "base", text: "base"}))
	if err != nil {
		t.Fatal(err)
	}
	top, err := a.layer(files(file{name: "top", text: "top"}))
	if err != nil {
		t.Fatal(err)
	}
	one, two := []ocispec.Descriptor{base}, []ocispec.Descriptor{base, top}
	for _, i := range []struct {
		name   string
		layers []ocispec.Descriptor
	}{{"example.com/one:1", one}, {"example.com/two:1", two}, {"example.com/two:2", two}} {
		if err := a.image(i.name, ocispec.ImageConfig{User: "1234"}, i.layers); err != nil {
			t.Fatal(err)
		}
	}
	whole := filepath.Join(t.TempDir(), "images.tar")
	if err := a.write(whole); err != nil {
		t.Fatal(err)
	}

	content := unpack(t, whole)
	var index ocispec.Index
	if err := json.Unmarshal(content["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"example.com/one:1": 1, "example.com/two:1": 2, "example.com/two:2": 2}
	for _, d := range index.Manifests {
		var manifest ocispec.Manifest
		blob(t, content, d, &manifest)
		name := d.Annotations[nameAnnotation]
		if len(manifest.Layers) != want[name] || len(manifest.Layers) == 0 {
			t.Errorf("%s has %d layers, want %d", name, len(manifest.Layers), want[name])
		}
		delete(want, name)
		var config ocispec.Image
		blob(t, content, manifest.Config, &config)
		if config.Config.User != "1234" || config.OS != "linux" || config.Architecture == "" {
			t.Errorf("%s is configured as %+v", name, config)
		}
		for i, layer := range manifest.Layers {
			blob(t, content, layer, nil)
			if config.RootFS.DiffIDs[i] != layer.Digest { // nothing is compressed
				t.Errorf("layer %d of %s is %s, and its config says %s", i, name, layer.Digest, config.RootFS.DiffIDs[i])
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("the archive lacks %v", want)
	}
	if string(content["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", content["oci-layout"])
	}
}
