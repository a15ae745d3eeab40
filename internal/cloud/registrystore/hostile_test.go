// SPDX-License-Identifier: Apache-2.0

package registrystore

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
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

// A part that is still being sent must not grow the blob that its upload has become: every repository with the digest has that file.
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
