// SPDX-License-Identifier: Apache-2.0

package pulledstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/platform/blobstore"
)

const imageType = "application/vnd.oci.image.manifest.v1+json"

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) keep(t *testing.T, content string) digest.Digest {
	t.Helper()
	incoming, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(incoming, content); err != nil {
		t.Fatal(err)
	}
	sum := digest.FromString(content)
	if err := incoming.Keep(sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestKept(t *testing.T) {
	s := open(t)
	sum := s.keep(t, "layer")
	manifest := []byte(`{"x":1}`)
	of := digest.FromBytes(manifest)
	if err := errors.Join(s.PutManifest(of, imageType, manifest), s.SetTag("docker.io/library/web", "v1", of)); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	file, err := again.Blob(sum)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil || string(content) != "layer" {
		t.Errorf("%q, %v", content, err)
	}
	if got, err := again.Tag("docker.io/library/web", "v1"); got != of || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if kind, content, err := again.Manifest(of); kind != imageType || string(content) != string(manifest) || err != nil {
		t.Errorf("%s %s, %v", kind, content, err)
	}
	if _, _, err := again.Manifest(sum); !errors.Is(err, ErrNotKept) {
		t.Errorf("a layer is given out as a manifest: %v", err)
	}
	for _, err := range []error{second(s.Tag("docker.io/library/web", "v2")), second(s.Tag("ghcr.io/library/web", "v1")), second(s.Blob(digest.FromString("other")))} {
		if !errors.Is(err, ErrNotKept) {
			t.Errorf("%v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestRefused(t *testing.T) {
	s := open(t)
	incoming, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(incoming, "other"); err != nil {
		t.Fatal(err)
	}
	want := digest.FromString("layer")
	if wrong := new(blobstore.DigestError); !errors.As(incoming.Keep(want), &wrong) {
		t.Error("content with another digest is kept")
	}
	if wrong := new(blobstore.DigestError); !errors.As(s.PutManifest(want, imageType, []byte("other")), &wrong) {
		t.Error("a manifest with another digest is kept")
	}
	if left, err := os.ReadDir(s.path("partial")); len(left) > 0 || err != nil {
		t.Errorf("%v is left: %v", left, err)
	}
	for _, sum := range []digest.Digest{"", "sha256:..", "sha256:../../../etc/passwd", digest.Digest("sha512:" + strings.Repeat("0", 128))} {
		if _, err := s.Blob(sum); err == nil || errors.Is(err, ErrNotKept) {
			t.Errorf("%q: %v", sum, err)
		}
	}
	for _, c := range [][2]string{{"", "v1"}, {"..", "v1"}, {"a/b", ".."}, {"a/b", "x/y"}, {"a/b", ""}, {strings.Repeat("a", 300), "v1"}} {
		if err := s.SetTag(c[0], c[1], want); err == nil {
			t.Errorf("%q is taken", c)
		}
	}
}

// Unfinished pulls of an earlier process are removed, and nothing else.
func TestKilled(t *testing.T) {
	s := open(t)
	sum := s.keep(t, "layer")
	if _, err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(again.path("partial")); len(left) > 0 || err != nil {
		t.Errorf("%v is left: %v", left, err)
	}
	if _, err := again.Blob(sum); err != nil {
		t.Error(err)
	}
}

func TestCollect(t *testing.T) {
	s := open(t)
	at := time.Now().Add(-time.Hour)
	s.now = func() time.Time { at = at.Add(time.Second); return at }
	var sums []digest.Digest
	for _, name := range []string{"a", "b", "c", "d"} {
		sum := s.keep(t, strings.Repeat(name, 100))
		file, err := s.Blob(sum)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		sums = append(sums, sum)
	}
	if err := errors.Join(s.SetTag("x.io/a", "v1", sums[1]), s.SetTag("x.io/a", "v2", sums[0])); err != nil {
		t.Fatal(err)
	}
	if blobs, _, left, err := s.Collect(400); blobs != 0 || left != 400 || err != nil {
		t.Errorf("%d went, %d left, %v", blobs, left, err)
	}
	reader, err := s.Blob(sums[1])
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Blob(sums[0]) // it is used again: b, c and d were used longer ago
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	third, err := s.Blob(sums[2])
	if err != nil {
		t.Fatal(err)
	}
	_ = third.Close()
	blobs, removed, left, err := s.Collect(300)
	if blobs != 2 || removed != 200 || left != 200 || err != nil {
		t.Errorf("%d went of %d bytes, %d left: %v", blobs, removed, left, err)
	}
	for i, want := range []bool{true, false, true, false} {
		if file, err := s.Blob(sums[i]); (err == nil) != want {
			t.Errorf("blob %d: %v", i, err)
		} else if err == nil {
			_ = file.Close()
		}
	}
	if content, err := io.ReadAll(reader); len(content) != 100 || err != nil {
		t.Errorf("a reader has %d bytes: %v", len(content), err)
	}
	_ = reader.Close()
	if _, err := s.Tag("x.io/a", "v1"); !errors.Is(err, ErrNotKept) {
		t.Errorf("a tag leads to what is gone: %v", err)
	}
	if _, err := s.Tag("x.io/a", "v2"); err != nil {
		t.Error(err)
	}
}

// Tags that lead to one image do not fill the disk with files; those used longest ago go first.
func TestTagsAreBounded(t *testing.T) {
	s := open(t)
	clock := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	s.maxTags = 20
	manifest := []byte(`{"x":1}`)
	of := digest.FromBytes(manifest)
	if err := s.PutManifest(of, imageType, manifest); err != nil {
		t.Fatal(err)
	}
	set := func(repository, tag string) {
		t.Helper()
		if err := s.SetTag(repository, tag, of); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Tag(repository, tag); err != nil || got != of { // as a machine asks again
			t.Fatalf("%s:%s is %q, %v", repository, tag, got, err)
		}
	}
	set("docker.io/library/web", "old")
	set("docker.io/library/web", "used")
	for n := range 100 {
		set("docker.io/hostile/x", fmt.Sprint(n))
		if got, err := s.Tag("docker.io/library/web", "used"); err != nil || got != of {
			t.Fatalf("after %d: %v", n, err)
		}
		if n == 50 { // it counts what is there
			again, err := Open(s.dir)
			if err != nil {
				t.Fatal(err)
			}
			again.now, again.maxTags = s.now, s.maxTags
			s = again
		}
		if files, err := s.tagFiles(); err != nil || len(files) > s.maxTags {
			t.Fatalf("%d tags are kept, %v", len(files), err)
		}
	}
	if _, err := s.Tag("docker.io/library/web", "old"); !errors.Is(err, ErrNotKept) {
		t.Errorf("the one used longest ago is kept: %v", err)
	}
}
