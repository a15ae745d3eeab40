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
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// binary writes a stand-in for a static executable, big enough that it compresses in several blocks.
func binary(t *testing.T) string {
	t.Helper()
	var content bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&content, "%d squared is %d\n", i, i*i)
	}
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func config(t *testing.T) Config {
	t.Helper()
	second := filepath.Join(t.TempDir(), "second")
	writeFile(t, second, []byte("another program"))
	return Config{Binaries: []string{binary(t), second}, Name: "muster.dev/tool:v1", User: "65532", Architecture: "amd64", Args: []string{"serve"}}
}

func TestWriteImage(t *testing.T) {
	c := config(t)
	path := filepath.Join(t.TempDir(), "tool.tar")
	if err := Write(path, c); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, entry := range entries(t, path) {
		if entry.Typeflag == tar.TypeReg {
			writeFile(t, filepath.Join(root, entry.Name), entry.content)
		}
	}
	index, err := layout.ImageIndexFromPath(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index, validate.Fast); err != nil { // all but the layers, which it takes for gzip
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(manifest.Manifests); n != 1 {
		t.Fatalf("the index holds %d images, want 1", n)
	}
	annotations := manifest.Manifests[0].Annotations
	for key, want := range map[string]string{
		"io.containerd.image.name":          "muster.dev/tool:v1",
		"org.opencontainers.image.ref.name": "v1",
	} {
		if got := annotations[key]; got != want {
			t.Errorf("annotation %s is %q, want %q", key, got, want)
		}
	}

	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{User: "65532", Env: []string{"PATH=/"}, Entrypoint: []string{"/tool"}, Cmd: []string{"serve"}, WorkingDir: "/"}
	if got, wanted := toJSON(t, file.Config), toJSON(t, want); got != wanted {
		t.Errorf("the image's config is %s, want %s", got, wanted)
	}
	checkLayer(t, img, file.RootFS.DiffIDs)
	if file.OS != "linux" || file.Architecture != "amd64" {
		t.Errorf("the image is for %s/%s, want linux/amd64", file.OS, file.Architecture)
	}
}

// checkLayer sees that the one layer unpacks to what the config's hash of it says.
func checkLayer(t *testing.T, img v1.Image, diffIDs []v1.Hash) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 || len(diffIDs) != 1 {
		t.Fatalf("%d layers, %d hashes (%v), want one of each", len(layers), len(diffIDs), err)
	}
	if mediaType, err := layers[0].MediaType(); err != nil || mediaType != types.OCILayerZStd {
		t.Errorf("the layer is %s (%v), want %s", mediaType, err, types.OCILayerZStd)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	hash, _, err := v1.SHA256(content)
	if err != nil || hash != diffIDs[0] {
		t.Errorf("the layer unpacks to %s (%v), the config says %s", hash, err, diffIDs[0])
	}
}

func TestRootFileSystem(t *testing.T) {
	content, err := rootfs([]entry{{name: "tool", mode: 0o755, content: []byte("program")}, {name: "other", mode: 0o755}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range read(t, bytes.NewReader(content)) {
		got = append(got, fmt.Sprintf("%s %#o %d:%d %d", entry.Name, entry.Mode, entry.Uid, entry.Gid, entry.Size))
		if !entry.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s is of %s, want the epoch", entry.Name, entry.ModTime)
		}
	}
	want := []string{"etc/ 0755 0:0 0", "etc/group 0644 0:0 27", "etc/passwd 0644 0:0 78", "tmp/ 01777 0:0 0", "tool 0755 0:0 7", "other 0755 0:0 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestSameBinarySameBytes(t *testing.T) {
	c := config(t)
	dir := t.TempDir()
	var first []byte
	for i := range 3 {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := Write(path, c); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = content
		} else if !bytes.Equal(first, content) {
			t.Fatalf("archive %d differs from the first", i)
		}
	}
}

func TestWriteFailsAndLeavesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		err    string
	}{
		"no binary":    {change: func(c *Config) { c.Binaries = nil }, err: "no binary to pack"},
		"one missing":  {change: func(c *Config) { c.Binaries = append(c.Binaries, c.Binaries[0]+"-not") }, err: "reading the binary"},
		"one twice":    {change: func(c *Config) { c.Binaries = append(c.Binaries, c.Binaries[0]) }, err: "two binaries are called tool"},
		"no tag":       {change: func(c *Config) { c.Name = "muster.dev/tool" }, err: "has no tag"},
		"empty tag":    {change: func(c *Config) { c.Name = "muster.dev/tool:" }, err: "has no tag"},
		"port, no tag": {change: func(c *Config) { c.Name = "muster.dev:443/tool" }, err: "has no tag"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			tc.change(&c)
			dir := t.TempDir()
			err := Write(filepath.Join(dir, "tool.tar"), c)
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != 0 {
				t.Errorf("left %v (%v), want nothing", left, err)
			}
		})
	}
}

type packed struct {
	*tar.Header
	content []byte
}

func entries(t *testing.T, path string) []packed {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return read(t, file)
}

func read(t *testing.T, r io.Reader) []packed {
	t.Helper()
	var all []packed
	for reader := tar.NewReader(r); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, packed{Header: header, content: content})
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
