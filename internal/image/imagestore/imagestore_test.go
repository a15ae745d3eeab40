// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"muster.dev/muster/internal/node/loadedimages"
	"muster.dev/muster/internal/platform/statedir"
)

// world is a store with two clusters.
type world struct {
	*Store
	t     *testing.T
	clock time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"red", "blue"} {
		if err := os.MkdirAll(filepath.Join(dir, "clusters", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{Store: New(statedir.Dir(dir)), t: t, clock: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)}
	w.now = func() time.Time { return w.clock }
	return w
}

// load loads an image whose layer is some text.
func (w *world) load(name, layer string, namespaces ...string) {
	w.t.Helper()
	ingest, err := w.Begin()
	if err != nil {
		w.t.Fatal(err)
	}
	add := func(content string) ocispec.Descriptor {
		sum, size, err := ingest.Add(strings.NewReader(content))
		if err != nil {
			w.t.Fatal(err)
		}
		return ocispec.Descriptor{Digest: sum, Size: size}
	}
	image := loadedimages.Image{Name: name, Manifest: add("manifest of " + layer), Config: add("configuration of " + layer), Layers: []ocispec.Descriptor{add(layer)}}
	if err := w.Add(w.t.Context(), ingest, []loadedimages.Image{image}, namespaces); err != nil {
		w.t.Fatal(err)
	}
	if err := ingest.End(); err != nil {
		w.t.Fatal(err)
	}
}

// sees is what the machines of a cluster see: each name and the text of its layer. All blobs of the index must be
// there.
func (w *world) sees(cluster string) string {
	w.t.Helper()
	dir := w.state.Cluster(cluster).Images()
	index, _, err := loadedimages.Read(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	var seen []string
	for _, image := range index.Images {
		for _, blob := range image.Blobs() {
			if content, err := os.ReadFile(loadedimages.BlobPath(dir, blob.Digest)); err != nil || digest.FromBytes(content) != blob.Digest {
				w.t.Errorf("cluster %s, image %s: blob %s: %v", cluster, image.Name, blob.Digest, err)
			}
		}
		layer, _ := os.ReadFile(loadedimages.BlobPath(dir, image.Layers[0].Digest))
		seen = append(seen, image.Name+"="+string(layer))
	}
	return strings.Join(seen, " ")
}

func (w *world) expect(red, blue string) {
	w.t.Helper()
	if got := w.sees("red"); got != red {
		w.t.Errorf("red sees %q, want %q", got, red)
	}
	if got := w.sees("blue"); got != blue {
		w.t.Errorf("blue sees %q, want %q", got, blue)
	}
}

func TestWhichClusterHasWhichImage(t *testing.T) {
	w := newWorld(t)
	w.load("a:1", "one")
	w.expect("a:1=one", "a:1=one")
	w.load("a:1", "own", "blue")
	w.load("b:1", "x", "red")
	w.expect("a:1=one b:1=x", "a:1=own")
	if err := w.Remove(t.Context(), []string{"a:1"}, []string{"red"}); err == nil || !strings.Contains(err.Error(), "loaded for all clusters") {
		t.Errorf("taking an image of all from one: %v", err)
	}
	w.load("a:1", "two", "blue", "red")
	w.expect("a:1=two b:1=x", "a:1=two")
	if err := w.Remove(t.Context(), []string{"b:1"}, []string{"blue"}); !isNotFound(err) {
		t.Errorf("removing what blue does not have: %v", err)
	}
	w.load("a:1", "three") // for all: it is the only one of the name then
	w.expect("a:1=three b:1=x", "a:1=three")
	if err := w.Remove(t.Context(), []string{"a:1", "b:1"}, nil); err != nil {
		t.Error(err)
	}
	w.expect("", "")
	if err := w.Remove(t.Context(), []string{"a:1"}, nil); !isNotFound(err) {
		t.Errorf("removing it twice: %v", err)
	}
}

func isNotFound(err error) bool {
	var none *NotFoundError
	return errors.As(err, &none)
}

func TestAClusterThatComesLaterHasThem(t *testing.T) {
	w := newWorld(t)
	w.load("a:1", "one")
	green := w.state.Cluster("green")
	if _, err := w.Show(t.Context(), green); err == nil {
		t.Error("a cluster that does not exist has a directory of images")
	}
	if err := os.Mkdir(string(green), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := w.Show(t.Context(), green)
	if err != nil || dir != green.Images() {
		t.Fatal(dir, err)
	}
	if got := w.sees("green"); got != "a:1=one" {
		t.Errorf("it sees %q", got)
	}
}

// blobs is how many the store has, and how many the machines of red see.
func (w *world) blobs() [2]int {
	w.t.Helper()
	var n [2]int
	for i, dir := range []string{w.dir(), w.state.Cluster("red").Images()} {
		entries, err := os.ReadDir(filepath.Join(dir, "blobs/sha256"))
		if err != nil {
			w.t.Fatal(err)
		}
		n[i] = len(entries)
	}
	return n
}

func TestBlobsStayForAnHourAfterTheirLastImage(t *testing.T) {
	w := newWorld(t)
	w.load("a:1", "one")
	w.load("a:1", "two")
	if got := w.blobs(); got != [2]int{6, 6} {
		t.Errorf("at once: %v", got)
	}
	w.clock = w.clock.Add(59 * time.Minute)
	w.load("b:1", "one") // used again: the hour begins anew when it goes
	w.clock = w.clock.Add(time.Minute)
	if err := w.Remove(t.Context(), []string{"b:1"}, nil); err != nil {
		t.Fatal(err)
	}
	if got := w.blobs(); got != [2]int{6, 6} {
		t.Errorf("the hour did not begin anew: %v", got)
	}
	w.clock = w.clock.Add(time.Hour)
	if _, err := w.Show(t.Context(), w.state.Cluster("red")); err != nil { // as a machine of red boots
		t.Fatal(err)
	}
	if got := w.blobs(); got != [2]int{6, 3} {
		t.Errorf("after an hour red sees %v", got)
	}
	w.load("c:1", "two")
	if got := w.blobs(); got != [2]int{3, 3} {
		t.Errorf("after the next change: %v", got)
	}
	w.expect("a:1=two c:1=two", "a:1=two c:1=two")
}

func TestALoadThatWasCutShortIsRemoved(t *testing.T) {
	w := newWorld(t)
	cut, err := w.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := cut.Add(strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	running, err := w.Begin()
	if err != nil {
		t.Fatal(err)
	}
	cut.release() // its process is gone
	w.load("a:1", "one")
	if _, err := os.Stat(cut.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was cut short is still there: %v", err)
	}
	if _, err := os.Stat(running.dir); err != nil {
		t.Errorf("a load that goes on lost its directory: %v", err)
	}
	if err := running.End(); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(w.dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ingestPrefix) {
			t.Errorf("%s is left", entry.Name())
		}
	}
}

func TestABlobOfNobodyIsNotAdded(t *testing.T) {
	w := newWorld(t)
	w.load("a:1", "one")
	ingest, err := w.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ingest.End() }()
	missing := ocispec.Descriptor{Digest: digest.FromString("missing"), Size: 7}
	if err := w.Add(t.Context(), ingest, []loadedimages.Image{{Name: "b:1", Manifest: missing, Config: missing}}, nil); err == nil {
		t.Error("no error")
	}
	w.expect("a:1=one", "a:1=one")
	if _, err := ingest.Open("sha256:../../x"); err == nil {
		t.Error("a digest that is a path is opened")
	}
}
