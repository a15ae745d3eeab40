// SPDX-License-Identifier: Apache-2.0

package loadedimages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func blob(content string) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: "x", Digest: digest.FromString(content), Size: int64(len(content))}
}

func TestAnIndexIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	if index, version, err := Read(dir); err != nil || len(index.Images) != 0 || version == "" {
		t.Errorf("without an index: %v %q %v", index, version, err)
	}
	want := Index{Images: []Image{{Name: "docker.io/library/a:b", Manifest: blob("m"), Config: blob("c"), Layers: []ocispec.Descriptor{blob("l"), blob("l"), blob("k")}}}}
	content, version, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, IndexFile), content, 0o600); err != nil {
		t.Fatal(err)
	}
	got, read, err := Read(dir)
	if err != nil || read != version {
		t.Errorf("version %q, want %q; %v", read, version, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
	if n, size := len(got.Images[0].Blobs()), got.Images[0].Size(); n != 4 || size != 4 {
		t.Errorf("%d blobs of %d bytes, want each once: 4 of 4", n, size)
	}
	if last := got.Images[0].Blobs()[3]; last.Digest != got.Images[0].Manifest.Digest {
		t.Error("the manifest is not the last blob")
	}
}

func TestAnIndexThatCannotBeIsRefused(t *testing.T) {
	const good = `"manifest":{"digest":"sha256:62c66a7a5dd70c3146618063c344e531e6d4b59e379808443ce962b3abd63c5a","size":1}`
	for name, content := range map[string]string{
		"no JSON":           `{`,
		"no name":           `{"images":[{` + good + `}]}`,
		"a path for a hash": `{"images":[{"name":"a","config":{"digest":"sha256:../../../etc/passwd","size":1},` + good + `}]}`,
		"another algorithm": `{"images":[{"name":"a","config":{"digest":"sha512:` + strings.Repeat("0", 128) + `","size":1},` + good + `}]}`,
		"a negative size":   `{"images":[{"name":"a","config":{"digest":"sha256:` + strings.Repeat("0", 64) + `","size":-1},` + good + `}]}`,
	} {
		if _, err := Parse([]byte(content)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"images":[{"name":"a","manifest":{"digest":"sha256:62c66a7a5dd70c3146618063c344e531e6d4b59e379808443ce962b3abd63c5a","size":1}}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		index, err := Parse(content)
		if err != nil {
			return
		}
		for _, image := range index.Images {
			for _, one := range image.Blobs() {
				if path := BlobPath("/d", one.Digest); filepath.Dir(path) != "/d/blobs/sha256" {
					t.Errorf("a blob is at %s", path)
				}
			}
		}
	})
}

func TestReports(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ReportPath)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	disk, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	if _, ok := ReadReport(disk); ok {
		t.Error("a report is there before one was written")
	}
	want := Report{Version: "v", Failure: "the disk\nis full"}
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, ok := ReadReport(disk)
	if !ok || got.Version != "v" || strings.Contains(got.Failure, "\n") || !strings.HasPrefix(got.Failure, "the disk") {
		t.Errorf("%+v", got)
	}
	if err := (Report{Failure: strings.Repeat("x", 1<<20)}).Write(path); err != nil {
		t.Fatal(err)
	}
	if got, ok := ReadReport(disk); !ok || len(got.Failure) != maxMessage {
		t.Errorf("a long failure has %d bytes", len(got.Failure))
	}
	if err := Forget(path); err != nil {
		t.Error(err)
	}
	if err := Forget(path); err != nil {
		t.Errorf("forgetting twice: %v", err)
	}
	// Files that root on a machine may put there.
	for name, put := range map[string]func() error{
		"a link out of the disk": func() error { return os.Symlink("/etc/passwd", path) },
		"a directory":            func() error { return os.Mkdir(path, 0o700) },
		"a large file": func() error {
			return os.WriteFile(path, []byte(`{"version":"`+strings.Repeat("x", maxReport)+`"}`), 0o600)
		},
		"no JSON": func() error { return os.WriteFile(path, []byte("x"), 0o600) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if r, ok := ReadReport(disk); ok {
			t.Errorf("%s is read as %+v", name, r)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}
