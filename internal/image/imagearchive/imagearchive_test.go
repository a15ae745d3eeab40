// SPDX-License-Identifier: Apache-2.0

package imagearchive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// memory keeps blobs in a directory.
type memory struct{ dir string }

func (m memory) Add(from io.Reader) (digest.Digest, int64, error) {
	content, err := io.ReadAll(from)
	if err != nil {
		return "", 0, err
	}
	sum := digest.FromBytes(content)
	return sum, int64(len(content)), os.WriteFile(filepath.Join(m.dir, sum.Encoded()), content, 0o600)
}

func (m memory) Open(sum digest.Digest) (*os.File, error) {
	return os.Open(filepath.Join(m.dir, sum.Encoded()))
}

// read reads a document, and checks that a descriptor describes it.
func (m memory) read(t *testing.T, d ocispec.Descriptor, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(m.dir, d.Digest.Encoded()))
	if err != nil {
		t.Fatal(err)
	}
	if digest.FromBytes(content) != d.Digest || int64(len(content)) != d.Size {
		t.Errorf("%d bytes, %+v", len(content), d)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}

// file is one of an archive; link makes it a symbolic link.
type file struct{ name, content, link string }

func pack(t testing.TB, files []file) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.content)), Typeflag: tar.TypeReg}
		if f.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func sum(content string) string { return digest.FromString(content).Encoded() }

func config(architecture string, layers ...string) string {
	ids := make([]string, 0, len(layers))
	for _, layer := range layers {
		ids = append(ids, `"sha256:`+sum(layer)+`"`)
	}
	return `{"architecture":"` + architecture + `","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":[` + strings.Join(ids, ",") + `]}}`
}

// dockerFiles are what docker save before version 25, and podman, write.
func dockerFiles() []file {
	c := config("amd64", "layer one", "layer two")
	return []file{
		{name: "one/layer.tar", content: "layer one"},
		{name: "two/layer.tar", link: "../three/layer.tar"},
		{name: sum(c) + ".json", content: c},
		{name: "three/layer.tar", content: "layer two"},
		{name: "manifest.json", content: `[{"Config":"` + sum(c) + `.json","RepoTags":["web:dev","example.com/web:1"],"Layers":["one/layer.tar","two/layer.tar"]}]`},
	}
}

func descriptor(kind, content, more string) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":"sha256:%s","size":%d%s}`, kind, sum(content), len(content), more)
}

// layoutFiles are an OCI image layout with an index of two platforms and an attestation.
func layoutFiles(annotations string) []file {
	c := config("amd64", "layer one")
	m := `{"schemaVersion":2,"mediaType":"` + ocispec.MediaTypeImageManifest + `","config":` + descriptor(ocispec.MediaTypeImageConfig, c, "") +
		`,"layers":[` + descriptor(ocispec.MediaTypeImageLayer, "layer one", "") + `]}`
	index := `{"schemaVersion":2,"manifests":[` + descriptor(ocispec.MediaTypeImageManifest, "elsewhere", `,"platform":{"os":"linux","architecture":"arm64"}`) + `,` +
		descriptor(ocispec.MediaTypeImageManifest, m, `,"platform":{"os":"linux","architecture":"amd64"}`) + `]}`
	top := `{"schemaVersion":2,"manifests":[` + descriptor(ocispec.MediaTypeImageIndex, index, `,"annotations":{`+annotations+`}`) + `]}`
	files := []file{{name: "oci-layout", content: `{"imageLayoutVersion":"1.0.0"}`}, {name: "index.json", content: top}}
	for _, content := range []string{c, m, index, "layer one"} {
		files = append(files, file{name: "blobs/sha256/" + sum(content), content: content})
	}
	return files
}

var amd64 = ocispec.Platform{OS: "linux", Architecture: "amd64"}

const whole = `"io.containerd.image.name":"docker.io/library/web:dev"`

func zip(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchives(t *testing.T) {
	for name, c := range map[string]struct {
		archive []byte
		name    string
		want    string // names
		layers  int
	}{
		"docker":                  {pack(t, dockerFiles()), "", "docker.io/library/web:dev example.com/web:1", 2},
		"docker, compressed":      {zip(t, pack(t, dockerFiles())), "", "docker.io/library/web:dev example.com/web:1", 2},
		"layout":                  {pack(t, layoutFiles(whole)), "", "docker.io/library/web:dev", 1},
		"layout with a reference": {pack(t, layoutFiles(`"org.opencontainers.image.ref.name":"quay.io/a/b:c"`)), "", "quay.io/a/b:c", 1},
		"layout with a tag":       {pack(t, layoutFiles(`"org.opencontainers.image.ref.name":"v2"`)), "web", "docker.io/library/web:v2", 1},
		"another name":            {pack(t, layoutFiles(whole)), "other:1", "docker.io/library/other:1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			images, err := ReadStream(t.Context(), bytes.NewReader(c.archive), memory{t.TempDir()}, amd64, c.name)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, image := range images {
				names = append(names, image.Name)
				if len(image.Layers) != c.layers {
					t.Errorf("%s has %d layers", image.Name, len(image.Layers))
				}
				if image.Layers[0].Digest != digest.FromString("layer one") || image.Layers[0].MediaType != ocispec.MediaTypeImageLayer {
					t.Errorf("first layer %+v", image.Layers[0])
				}
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("names %q, want %q", got, c.want)
			}
		})
	}
}

// Tools that begin with nothing, such as crane append, write a configuration without os and architecture.
func TestPlatformThatIsNotSaid(t *testing.T) {
	for name, c := range map[string]struct{ os, architecture, want string }{
		"neither":              {"", "", ""},
		"no os":                {"", "amd64", ""},
		"no architecture":      {"linux", "", ""},
		"another os":           {"windows", "", "it is for windows/amd64, and machines are linux/amd64"},
		"another architecture": {"", "arm64", "it is for linux/arm64, and machines are linux/amd64"},
	} {
		text := strings.NewReplacer(`"architecture":"amd64",`, "", `"os":"linux",`, "").Replace(config("amd64", "layer one"))
		if c.os != "" {
			text = strings.Replace(text, "{", `{"os":"`+c.os+`",`, 1)
		}
		if c.architecture != "" {
			text = strings.Replace(text, "{", `{"architecture":"`+c.architecture+`",`, 1)
		}
		manifest := `{"schemaVersion":2,"config":` + descriptor(ocispec.MediaTypeImageConfig, text, "") + `,"layers":[` + descriptor(ocispec.MediaTypeImageLayer, "layer one", "") + `]}`
		layout := []file{{name: "oci-layout", content: `{"imageLayoutVersion":"1.0.0"}`}, {name: "index.json", content: `{"schemaVersion":2,"manifests":[` + descriptor(ocispec.MediaTypeImageManifest, manifest, `,"annotations":{`+whole+`}`) + `]}`}}
		for _, content := range []string{text, manifest, "layer one"} {
			layout = append(layout, file{name: "blobs/sha256/" + sum(content), content: content})
		}
		docker := []file{
			{name: "c.json", content: text},
			{name: "l.tar", content: "layer one"},
			{name: "manifest.json", content: `[{"Config":"c.json","RepoTags":["web:dev"],"Layers":["l.tar"]}]`},
		}
		for form, files := range map[string][]file{"docker": docker, "layout": layout} {
			blobs := memory{t.TempDir()}
			images, err := ReadStream(t.Context(), bytes.NewReader(pack(t, files)), blobs, amd64, "")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v, want %q", form, name, err, c.want)
			}
			if err != nil {
				continue
			}
			var m ocispec.Manifest
			blobs.read(t, images[0].Manifest, &m)
			if len(m.Layers) != 1 || m.Config.Digest != images[0].Config.Digest || m.Config.MediaType != ocispec.MediaTypeImageConfig || m.SchemaVersion != 2 {
				t.Errorf("%s, %s: manifest %+v", form, name, m)
			}
			var got ocispec.Image
			blobs.read(t, images[0].Config, &got)
			if got.OS != "linux" || got.Architecture != "amd64" || len(got.RootFS.DiffIDs) != 1 || got.RootFS.DiffIDs[0] != digest.FromString("layer one") {
				t.Errorf("%s, %s: configuration %+v", form, name, got)
			}
		}
	}
}

func TestADirectory(t *testing.T) {
	dir := t.TempDir()
	for _, f := range layoutFiles(whole) {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "blobs/sha256", strings.Repeat("0", 64))); err != nil {
		t.Fatal(err)
	}
	blobs := memory{t.TempDir()}
	images, err := Read(t.Context(), dir, blobs, amd64, "")
	if err != nil || len(images) != 1 {
		t.Fatalf("%v %v", images, err)
	}
	if taken, _ := os.ReadDir(blobs.dir); len(taken) != 6 {
		t.Errorf("%d files were taken in: a link was followed", len(taken))
	}
}

// A docker archive's manifest is made here: it must say what is in the archive.
func TestTheManifestOfADockerArchive(t *testing.T) {
	blobs := memory{t.TempDir()}
	images, err := ReadStream(t.Context(), bytes.NewReader(pack(t, dockerFiles())), blobs, amd64, "")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(blobs.dir, images[0].Manifest.Digest.Encoded()))
	if err != nil {
		t.Fatal(err)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		t.Fatal(err)
	}
	if m.SchemaVersion != 2 || m.Config.Digest != images[0].Config.Digest || len(m.Layers) != 2 || int64(len(content)) != images[0].Manifest.Size {
		t.Errorf("manifest %s", content)
	}
}

func TestWhatIsNoImageIsRefused(t *testing.T) {
	replaced := func(files []file, old, by string) []byte {
		for i := range files {
			files[i].content = strings.ReplaceAll(files[i].content, old, by)
		}
		return pack(t, files)
	}
	arm := config("arm64", "layer one")
	two := slices.Concat(dockerFiles()[:4], []file{{name: "manifest.json", content: `[{"Config":"` + strings.TrimSuffix(dockerFiles()[2].name, ".json") + `.json","Layers":["one/layer.tar","two/layer.tar"]}]`}})
	for name, c := range map[string]struct {
		archive []byte
		name    string
		want    string
	}{
		"text":                    {[]byte("hello"), "", "neither"},
		"nothing":                 {nil, "", "neither"},
		"a tar of something else": {pack(t, []file{{name: "a", content: "b"}}), "", "neither"},
		"cut short":               {pack(t, dockerFiles())[:1200], "", "ends early or is damaged"},
		"another layer":           {replaced(dockerFiles(), "layer two", "layer 222"), "", "its configuration says"},
		"no configuration":        {replaced(dockerFiles(), `"Config":"`, `"Config":"x`), "", "is missing"},
		"no name":                 {pack(t, two), "", "give it one by --name"},
		"a layer of a layout":     {replaced(layoutFiles(whole), "layer one", "layer 111"), "", "is missing"},
		"a size":                  {replaced(layoutFiles(whole), `"size":9}`, `"size":8}`), "", "is missing"},
		"another platform": {pack(t, []file{
			{name: "c.json", content: arm},
			{name: "l.tar", content: "layer one"},
			{name: "manifest.json", content: `[{"Config":"c.json","RepoTags":["a:b"],"Layers":["l.tar"]}]`},
		}), "", "it is for linux/arm64, and machines are linux/amd64"},
		"one name for two": {pack(t, dockerFiles()), "web:1", "--name can name one only"},
		"a link to itself": {pack(t, append(dockerFiles()[2:3:3], file{name: "l.tar", link: "l.tar"},
			file{name: "manifest.json", content: `[{"Config":"` + dockerFiles()[2].name + `","RepoTags":["a:b"],"Layers":["l.tar","l.tar"]}]`})), "", "is missing"},
		"a bad tag": {replaced(dockerFiles(), "web:dev", "Web:dev"), "", "invalid image name"},
	} {
		t.Run(name, func(t *testing.T) {
			images, err := ReadStream(t.Context(), bytes.NewReader(c.archive), memory{t.TempDir()}, amd64, c.name)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v %v, want an error with %q", images, err, c.want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"web": "docker.io/library/web:latest", "web:dev": "docker.io/library/web:dev", "a/b:c": "docker.io/a/b:c", "localhost:5000/a": "localhost:5000/a:latest",
		"muster.dev/a:b": "muster.dev/a:b", "": "", "A:b": "", "a@sha256:" + strings.Repeat("0", 64): "", "a:b:c": "",
	} {
		got, err := Name(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
}

func FuzzReadStream(f *testing.F) {
	f.Add(pack(f, dockerFiles()))
	f.Add(pack(f, layoutFiles(whole)))
	f.Add(zip(f, pack(f, layoutFiles(whole))))
	f.Fuzz(func(t *testing.T, content []byte) {
		blobs := memory{t.TempDir()}
		images, err := ReadStream(t.Context(), bytes.NewReader(content), blobs, amd64, "")
		if err != nil {
			return
		}
		for _, image := range images {
			for _, blob := range image.Blobs() {
				opened, err := blobs.Open(blob.Digest)
				if err != nil {
					t.Fatalf("image %s has a blob that is not there: %v", image.Name, err)
				}
				info, err := opened.Stat()
				_ = opened.Close()
				if err != nil || info.Size() != blob.Size {
					t.Fatalf("blob %s has %d bytes: %v", blob.Digest, blob.Size, err)
				}
			}
		}
	})
}
