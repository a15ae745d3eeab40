// SPDX-License-Identifier: Apache-2.0

package registrystore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

type world struct {
	*Store
	t     *testing.T
	clock time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Store: New(filepath.Join(t.TempDir(), "registry")), t: t, clock: time.Now()}
	w.now = func() time.Time { return w.clock }
	w.must(w.Create(t.Context(), Repository{Name: "aa"}))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) push(name, content string) digest.Digest {
	w.t.Helper()
	id, err := w.Begin(w.t.Context(), name)
	w.must(err)
	_, err = w.Append(name, id, 0, strings.NewReader(content))
	w.must(err)
	sum := digest.FromString(content)
	w.must(w.Finish(w.t.Context(), name, id, sum))
	return sum
}

func (w *world) image(name, tag, layer string) Manifest {
	w.t.Helper()
	config := w.push(name, "config of "+layer)
	sum := w.push(name, layer)
	content := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"c","digest":%q,"size":%d},"layers":[{"digest":%q,"size":%d}]}`,
		ocispec.MediaTypeImageManifest, config, len("config of "+layer), sum, len(layer))
	m, err := w.PutManifest(w.t.Context(), name, tag, "", content)
	w.must(err)
	return m
}

func (w *world) blobs() int {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "blobs/sha256"))
	w.must(err)
	return len(entries)
}

func TestRepositories(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"", "x", "A1", "a/", "/a", "a//b", "..", "a/../b", "a b", "a%2Fb", strings.Repeat("a", 257), strings.Repeat("a/", 127) + "a"} {
		if err := w.Create(t.Context(), Repository{Name: name}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := w.Get(name); err == nil {
			t.Errorf("%q is there", name)
		}
	}
	if err := w.Create(t.Context(), Repository{Name: "a"}); err == nil {
		t.Error("one-letter names have too few characters")
	}
	w.must(w.Create(t.Context(), Repository{Name: "b/c-d_e.f", Tags: map[string]string{"k": "v"}}))
	if err := w.Create(t.Context(), Repository{Name: "b/c-d_e.f"}); !errors.Is(err, ErrExists) {
		t.Errorf("twice: %v", err)
	}
	w.must(w.Update(t.Context(), "b/c-d_e.f", func(r *Repository) error { r.Immutable = true; return nil }))
	all, err := w.List()
	if err != nil || len(all) != 2 || !all[1].Immutable || all[1].Tags["k"] != "v" {
		t.Errorf("%+v %v", all, err)
	}
	w.image("b/c-d_e.f", "v1", "x")
	if err := w.Delete(t.Context(), "b/c-d_e.f", false); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("with images: %v", err)
	}
	w.must(w.Delete(t.Context(), "b/c-d_e.f", true))
	if _, err := w.Get("b/c-d_e.f"); !errors.Is(err, ErrNoRepository) {
		t.Errorf("removed: %v", err)
	}
}

func TestTags(t *testing.T) {
	w := newWorld(t)
	one := w.image("aa", "v1", "one")
	two := w.image("aa", "v1", "two")
	m, content, err := w.Manifest("aa", "v1")
	if err != nil || m.Digest != two.Digest || digest.FromBytes(content) != two.Digest {
		t.Errorf("%s %v", m.Digest, err)
	}
	w.must(w.Update(t.Context(), "aa", func(r *Repository) error { r.Immutable = true; return nil }))
	_, oldContent, err := w.Manifest("aa", one.Digest.String())
	w.must(err)
	if _, err := w.PutManifest(t.Context(), "aa", "v1", "", oldContent); !errors.Is(err, ErrImmutable) {
		t.Errorf("an immutable tag: %v", err)
	}
	if _, err := w.PutManifest(t.Context(), "aa", "v1", "", content); err != nil {
		t.Errorf("the same again: %v", err)
	}
	_, err = w.PutManifest(t.Context(), "aa", "v2", "", content)
	w.must(err)
	all, err := w.Manifests("aa")
	if err != nil || len(all) != 2 {
		t.Fatalf("%v %v", all, err)
	}
	if sum, err := w.DeleteTag(t.Context(), "aa", "v1"); err != nil || sum != two.Digest {
		t.Errorf("%s %v", sum, err)
	}
	if _, _, err := w.Manifest("aa", two.Digest.String()); err != nil {
		t.Errorf("an image went before its last tag: %v", err)
	}
	if _, err := w.DeleteTag(t.Context(), "aa", "v2"); err != nil {
		t.Error(err)
	}
	if _, _, err := w.Manifest("aa", two.Digest.String()); !errors.Is(err, ErrNoManifest) {
		t.Errorf("an image stays after its last tag: %v", err)
	}
	if tags, err := w.DeleteManifest(t.Context(), "aa", one.Digest); err != nil || len(tags) != 0 {
		t.Errorf("%v %v", tags, err)
	}
}

func TestAnImageOfAnIndexStays(t *testing.T) {
	w := newWorld(t)
	one := w.image("aa", "v1", "one")
	index := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":[{"digest":%q,"size":1}]}`, ocispec.MediaTypeImageIndex, one.Digest)
	whole, err := w.PutManifest(t.Context(), "aa", "all", ocispec.MediaTypeImageIndex, index)
	w.must(err)
	var by *ReferencedError
	if _, err := w.DeleteManifest(t.Context(), "aa", one.Digest); !errors.As(err, &by) || by.By != whole.Digest {
		t.Errorf("%v", err)
	}
	w.clock = w.clock.Add(48 * time.Hour)
	_, _, err = w.Collect(t.Context())
	w.must(err)
	if _, err := w.Blob("aa", digest.FromString("one")); err != nil {
		t.Error(err)
	}
	missing := fmt.Appendf(nil, `{"mediaType":%q,"manifests":[{"digest":%q}]}`, ocispec.MediaTypeImageIndex, digest.FromString("none"))
	if _, err := w.PutManifest(t.Context(), "aa", "x", "", missing); !errors.Is(err, ErrInvalid) {
		t.Errorf("an index of what is not there: %v", err)
	}
}

func TestWhatNothingRefersToGoesAfterADay(t *testing.T) {
	w := newWorld(t)
	w.image("aa", "v1", "kept")
	gone := w.image("aa", "v2", "gone")
	w.push("aa", "never used")
	_, err := w.Begin(t.Context(), "aa")
	w.must(err)
	_, err = w.DeleteManifest(t.Context(), "aa", gone.Digest)
	w.must(err)
	if n, _, err := w.Collect(t.Context()); err != nil || n != 1 { // the manifest, which nobody can push again by halves
		t.Errorf("at once: %d %v", n, err)
	}
	w.clock = w.clock.Add(25 * time.Hour)
	if n, bytes, err := w.Collect(t.Context()); err != nil || n != 3 || bytes != int64(len("goneconfig of gonenever used")) {
		t.Errorf("after a day: %d blobs, %d bytes, %v", n, bytes, err)
	}
	if n := w.blobs(); n != 3 {
		t.Errorf("%d blobs are left", n)
	}
	uploads, err := os.ReadDir(filepath.Join(w.dir, "uploads"))
	if err != nil || len(uploads) > 0 {
		t.Errorf("uploads %v %v", uploads, err)
	}
	if _, _, err := w.Manifest("aa", "v1"); err != nil {
		t.Error(err)
	}
}

func TestUploads(t *testing.T) {
	w := newWorld(t)
	id, err := w.Begin(t.Context(), "aa")
	w.must(err)
	if _, err := w.Append("aa", id, 3, strings.NewReader("x")); err == nil {
		t.Error("a part that begins elsewhere is taken")
	}
	for _, part := range []string{"ab", "cd"} {
		_, err = w.Append("aa", id, -1, strings.NewReader(part))
		w.must(err)
	}
	if err := w.Finish(t.Context(), "aa", id, digest.FromString("abcx")); !errors.Is(err, ErrInvalid) {
		t.Errorf("another digest: %v", err)
	}
	for _, bad := range []digest.Digest{"", "sha256:..", "sha512:" + digest.Digest(strings.Repeat("0", 128))} {
		if err := w.Finish(t.Context(), "aa", id, bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	w.must(w.Finish(t.Context(), "aa", id, digest.FromString("abcd")))
	for _, other := range []string{id, "..", "../repositories/aa", ""} {
		if _, err := w.Uploaded("aa", other); !errors.Is(err, ErrNoUpload) {
			t.Errorf("upload %q: %v", other, err)
		}
	}
	if size, err := w.Blob("aa", digest.FromString("abcd")); err != nil || size != 4 {
		t.Errorf("%d %v", size, err)
	}
}
