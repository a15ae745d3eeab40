// SPDX-License-Identifier: Apache-2.0

package registrystore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/filelock"
)

// stalled is the body of a part that is still being sent: it says when somebody reads, and goes on when it is told to.
type stalled struct{ begun, next chan string }

func (s stalled) Read(part []byte) (int, error) {
	s.begun <- ""
	text := <-s.next
	if text == "" {
		return 0, io.EOF
	}
	return copy(part, text), nil
}

// A part that is still being sent must not grow the blob that its upload has become: every repository with the digest
// has that file.
func TestFinishedBlobDoesNotGrow(t *testing.T) {
	w := newWorld(t)
	good := w.push("aa", "content")
	w.must(w.Create(t.Context(), Repository{Name: "hostile"}))
	id, err := w.Begin(t.Context(), "hostile")
	w.must(err)
	_, err = w.Append("hostile", id, 0, strings.NewReader("content"))
	w.must(err)

	body, sent := stalled{make(chan string), make(chan string)}, make(chan error, 1)
	go func() {
		_, err := w.Append("hostile", id, -1, body)
		sent <- err
	}()
	<-body.begun
	if err := w.Finish(t.Context(), "hostile", id, good); !errors.Is(err, ErrBusy) {
		t.Errorf("it is finished while a part is being sent: %v", err)
	}
	if _, err := w.Append("hostile", id, -1, strings.NewReader("x")); !errors.Is(err, ErrBusy) {
		t.Errorf("two parts are written at once: %v", err)
	}
	body.next <- "garbage"
	<-body.begun
	body.next <- ""
	w.must(<-sent)
	if err := w.Finish(t.Context(), "hostile", id, good); !errors.Is(err, ErrInvalid) {
		t.Errorf("what was appended is taken for the blob: %v", err)
	}
	file, err := w.OpenBlob("aa", good)
	w.must(err)
	defer func() { _ = file.Close() }()
	if got, err := digest.FromReader(file); err != nil || got != good {
		t.Errorf("the blob has the digest %s by now: %v", got, err)
	}
}

// A part that opened its upload before that was finished, and locks it after, must not write to the blob.
func TestUploadFinishedMeanwhile(t *testing.T) {
	w := newWorld(t)
	id, err := w.Begin(t.Context(), "aa")
	w.must(err)
	path, err := w.upload("aa", id)
	w.must(err)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	w.must(err)
	defer func() { _ = file.Close() }()
	w.must(w.Finish(t.Context(), "aa", id, digest.FromString("")))
	if err := take(file, path); !errors.Is(err, ErrNoUpload) {
		t.Errorf("it can be written: %v", err)
	}
}

func TestPushLeavesRoom(t *testing.T) {
	w := newWorld(t)
	image := w.image("aa", "1", "layer")
	id, err := w.Begin(t.Context(), "aa")
	w.must(err)
	left := int64(minRoom)
	w.free = func(string) (int64, error) {
		left--
		return left + 1, nil
	}
	at, err := w.Append("aa", id, 0, io.MultiReader(strings.NewReader("one"), strings.NewReader("two")))
	if !errors.Is(err, unix.ENOSPC) || at != 3 {
		t.Errorf("%d bytes are taken: %v", at, err)
	}
	_, content, err := w.Manifest("aa", image.Digest.String())
	w.must(err)
	if _, err := w.PutManifest(t.Context(), "aa", "2", "", content); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a manifest is taken: %v", err)
	}
}

// index is an index of one image, any number of times.
func index(child digest.Digest, times int) []byte {
	children := slices.Repeat([]string{fmt.Sprintf(`{"digest":%q,"size":1}`, child)}, times)
	return fmt.Appendf(nil, `{"mediaType":%q,"manifests":[%s]}`, ocispec.MediaTypeImageIndex, strings.Join(children, ","))
}

// References of an index are bounded, and checked before others wait for the store.
func TestReferencesAreBounded(t *testing.T) {
	w := newWorld(t)
	image := w.image("aa", "1", "layer")
	_, err := w.PutManifest(t.Context(), "aa", "most", "", index(image.Digest, maxReferences))
	w.must(err)
	release, err := filelock.Wait(t.Context(), w.dir, "lock")
	w.must(err)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // whoever waits for the lock gets another error
	layers := strings.Join(slices.Repeat([]string{fmt.Sprintf(`{"digest":%q,"size":1}`, image.Digest)}, maxReferences+1), ",")
	for name, content := range map[string][]byte{
		"an index of many":    index(image.Digest, maxReferences+1),
		"an image of many":    fmt.Appendf(nil, `{"mediaType":%q,"config":{},"layers":[%s]}`, ocispec.MediaTypeImageManifest, layers),
		"a size below 0":      fmt.Appendf(nil, `{"mediaType":%q,"manifests":[{"digest":%q,"size":-1}]}`, ocispec.MediaTypeImageIndex, image.Digest),
		"a digest of no form": index("sha256:x", 1),
	} {
		if _, err := w.PutManifest(ctx, "aa", "x", "", content); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A manifest is an image or an index, by its media type and by its content.
func TestImageAndIndexInOne(t *testing.T) {
	w := newWorld(t)
	image := w.image("aa", "1", "layer")
	_, content, err := w.Manifest("aa", image.Digest.String())
	w.must(err)
	with := func(content []byte, member string) []byte {
		return append(append([]byte("{"+member+","), content[1:]...), '\n')
	}
	children := fmt.Sprintf(`"manifests":[{"digest":%q,"size":1}]`, image.Digest)
	untyped := bytes.Replace(content, fmt.Appendf(nil, `"mediaType":%q,`, ocispec.MediaTypeImageManifest), nil, 1)
	for name, c := range map[string]struct {
		content   []byte
		mediaType string
		want      string
	}{
		"an image":                       {with(content, `"annotations":{}`), "", ""},
		"an index":                       {with(index(image.Digest, 1), `"annotations":{}`), "", ""},
		"an image with manifests":        {with(content, children), "", "has manifests of an index"},
		"an image with none of them":     {with(content, `"manifests":null`), "", "has manifests of an index"},
		"an image with Manifests":        {with(content, strings.Replace(children, "m", "M", 1)), "", "has manifests of an index"},
		"Docker's with manifests":        {with(untyped, children), dockerManifest, "has manifests of an index"},
		"an index with config":           {with(index(image.Digest, 1), `"config":{}`), "", "has config or layers of an image"},
		"an index with layers":           {with(index(image.Digest, 1), `"layers":[]`), "", "has config or layers of an image"},
		"an image of the first kind":     {with(content, `"fsLayers":[]`), "", "has fsLayers"},
		"an image sent as Docker's":      {with(untyped, `"annotations":{}`), dockerManifest, ""},
		"an image sent as an index":      {untyped, ocispec.MediaTypeImageIndex, "has config or layers of an image"},
		"an index sent as an image":      {fmt.Appendf(nil, `{%s}`, children), ocispec.MediaTypeImageManifest, "has manifests of an index"},
		"an image sent as Docker's list": {untyped, dockerList, "has config or layers of an image"},
	} {
		_, err := w.PutManifest(t.Context(), "aa", "2", c.mediaType, c.content)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Indexes of indexes of the same image have sizes that no number holds.
func TestSizesDoNotOverflow(t *testing.T) {
	w := newWorld(t)
	last := w.image("aa", "1", "layer")
	for range 10 {
		next, err := w.PutManifest(t.Context(), "aa", "nested", "", index(last.Digest, maxReferences))
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Error(err)
			}
			return
		}
		if next.Size <= last.Size {
			t.Fatalf("an index of images with %d bytes has %d", last.Size, next.Size)
		}
		last = next
	}
	t.Errorf("%d bytes", last.Size)
}

// The rest of a repository whose removal was killed goes with the next collection, which is at the start.
func TestKilledRemoval(t *testing.T) {
	w := newWorld(t)
	w.image("aa", "1", "layer")
	left := filepath.Join(w.dir, "repositories", removing+"123")
	w.must(os.MkdirAll(filepath.Join(left, "layers"), 0o700))
	_, _, err := w.Collect(t.Context())
	w.must(err)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	if all, err := w.List(); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
