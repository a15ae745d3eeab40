// SPDX-License-Identifier: Apache-2.0

package blobstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/platform/blobstore"
)

// A blob comes from memory or from a file, is listed by its digest, and goes. A blob that is being written has no
// digest yet.
func TestBlobs(t *testing.T) {
	parent := t.TempDir()
	d := blobstore.Dir(filepath.Join(parent, "blobs"))
	if err := os.Mkdir(string(d), 0o700); err != nil {
		t.Fatal(err)
	}
	one, two := digest.FromString("one"), digest.FromString("second")
	if err := d.Put(one, []byte("one")); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(parent, "incoming"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("second"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Keep(file, two), file.Close(), d.Sync()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(d), ".new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[digest.Digest]int64{}
	for _, b := range all {
		sizes[b.Digest] = b.Size
		if time.Since(b.Used) > time.Minute {
			t.Errorf("%s was used at %v", b.Name, b.Used)
		}
	}
	if len(sizes) != 3 || sizes[one] != 3 || sizes[two] != 6 || sizes[""] != 0 {
		t.Errorf("listed %v", sizes)
	}
	if content, err := os.ReadFile(d.Path(two)); err != nil || string(content) != "second" {
		t.Errorf("%q, %v", content, err)
	}
	for _, b := range all {
		if err := errors.Join(b.Remove(), b.Remove()); err != nil { // gone already the second time
			t.Error(err)
		}
	}
	if left, err := d.List(); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Content that is not what it is called, or that is not called by a SHA-256, becomes no file.
func TestRefused(t *testing.T) {
	d := blobstore.Dir(t.TempDir())
	var wrong *blobstore.DigestError
	if err := d.Put(digest.FromString("other"), []byte("one")); !errors.As(err, &wrong) || wrong.Got != digest.FromString("one") {
		t.Error(err)
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, sum := range []digest.Digest{"", "sha256:../../etc/passwd", digest.Digest("sha512:" + strings.Repeat("0", 128)), "sha256:ABC"} {
		if blobstore.Check(sum) == nil || d.Put(sum, nil) == nil || d.Keep(file, sum) == nil {
			t.Errorf("%q is taken", sum)
		}
	}
	if left, err := d.List(); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
