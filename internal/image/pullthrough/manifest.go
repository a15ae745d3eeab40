// SPDX-License-Identifier: Apache-2.0

package pullthrough

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"muster.dev/muster/internal/image/pulledstore"
	"muster.dev/muster/internal/image/upstream"
)

const (
	// copyPatience is how long a registry may take to answer about a tag if there is a copy, askPatience if there is
	// none.
	copyPatience = 5 * time.Second
	askPatience  = 30 * time.Second
)

func (h *Handler) serveManifest(q *request) error {
	if failed := h.recall(q); failed != nil {
		return failed
	}
	var sum digest.Digest
	var err error
	if q.isDigest() {
		sum = digest.Digest(q.reference)
		err = h.ensureManifest(q, sum)
	} else {
		sum, err = h.resolve(q)
	}
	if err != nil {
		return err
	}
	mediaType, content, err := h.Store.Manifest(sum)
	if err != nil {
		return err
	}
	header := q.answer.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(content)))
	header.Set("Docker-Content-Digest", sum.String())
	q.answer.WriteHeader(http.StatusOK)
	if q.Method == http.MethodHead {
		return nil
	}
	h.makeWhole(q, content)
	_, err = q.answer.Write(content)
	return err
}

// ensureManifest has a manifest be in the store.
func (h *Handler) ensureManifest(q *request, sum digest.Digest) error {
	if _, _, err := h.Store.Manifest(sum); !errors.Is(err, pulledstore.ErrNotKept) {
		q.result = kept
		return err
	}
	c, err := h.client(q)
	if err != nil {
		return err
	}
	q.result = pulled
	_, err = h.pullManifest(q, c, sum.String())
	return err
}

// resolve finds what a tag leads to: what its registry says, or else what it said before. The manifest is in the store
// then.
func (h *Handler) resolve(q *request) (digest.Digest, error) {
	before, err := h.Store.Tag(q.name(), q.reference)
	if err == nil {
		_, _, err = h.Store.Manifest(before)
	}
	have := err == nil
	if err != nil && !errors.Is(err, pulledstore.ErrNotKept) {
		return "", err
	}
	if have && h.isAway(q.place) {
		q.result = stale
		return before, nil
	}
	now, err := h.ask(q, before, have)
	if err == nil {
		return now, nil
	}
	if q.Context().Err() != nil { // the client went away, which says nothing of the registry
		return "", context.Cause(q.Context())
	}
	if have && !isAnswer(err) {
		if _, ours := errors.AsType[*failure](err); !ours { // else nothing may leave the VPC, or a setting cannot be used
			h.setAway(q.place, true)
		}
		q.result = stale
		h.Log.Warn("a copy is served for a tag that could not be asked about", "image", q.name()+":"+q.reference, "error", err)
		return before, nil
	}
	return "", err
}

// ask asks the registry what a tag leads to.
func (h *Handler) ask(q *request, before digest.Digest, have bool) (digest.Digest, error) {
	c, err := h.client(q)
	if err != nil {
		return "", err
	}
	patience := askPatience
	if have {
		patience = copyPatience
	}
	ctx, cancel := context.WithTimeout(q.Context(), patience)
	now, err := c.Head(ctx, q.repository, q.reference) // registries that count pulls do not count it
	cancel()
	if err != nil {
		return "", err
	}
	h.setAway(q.place, false)
	if have && now == before {
		q.result = kept
		return now, nil
	}
	if _, _, err := h.Store.Manifest(now); now != "" && err == nil {
		q.result = kept
		return now, h.Store.SetTag(q.name(), q.reference, now)
	}
	q.result = pulled
	want := q.reference
	if now != "" {
		want = now.String() // not what the tag leads to a moment later
	}
	if now, err = h.pullManifest(q, c, want); err != nil {
		return "", err
	}
	return now, h.Store.SetTag(q.name(), q.reference, now)
}

// pullManifest pulls a manifest by a tag or a digest into the store; requests of one VPC for the same one are one.
func (h *Handler) pullManifest(q *request, c *client, reference string) (digest.Digest, error) {
	done := h.manifests.DoChan(q.vpc+" "+q.name()+" "+reference, func() (any, error) {
		ctx, cancel := context.WithTimeout(h.life, askPatience)
		defer cancel()
		bound := q.settings.MaxSize.Value()
		if err := h.room(q.vpc, 0, bound); err != nil {
			return digest.Digest(""), err
		}
		mediaType, content, err := c.Manifest(ctx, q.repository, reference)
		if err != nil {
			return digest.Digest(""), err
		}
		if err := checkManifest(mediaType, content); err != nil {
			return digest.Digest(""), &upstream.StatusError{Registry: q.registry, Status: http.StatusBadGateway, Message: err.Error()}
		}
		sum := digest.FromBytes(content)
		if strings.Contains(reference, ":") {
			sum = digest.Digest(reference)
		}
		if err := h.Store.PutManifest(sum, mediaType, content); err != nil {
			return digest.Digest(""), err
		}
		h.grew(int64(len(content)), bound)
		return sum, nil
	})
	select {
	case <-q.Context().Done():
		return "", context.Cause(q.Context())
	case got := <-done:
		sum, _ := got.Val.(digest.Digest)
		return sum, got.Err
	}
}

// checkManifest refuses what could be taken for something else by its media type: the same bytes are kept once,
// whichever registry sent them, with the media type of the first.
func checkManifest(mediaType string, content []byte) error {
	var d struct {
		MediaType string          `json:"mediaType"`
		Config    json.RawMessage `json:"config"`
		Layers    json.RawMessage `json:"layers"`
		Manifests json.RawMessage `json:"manifests"`
	}
	switch {
	case !slices.Contains(upstream.MediaTypes, mediaType):
		return errors.New("the media type of what it sent is not one of an image or an index of images")
	case json.Unmarshal(content, &d) != nil:
		return errors.New("the manifest that it sent is not JSON")
	case d.MediaType != "" && d.MediaType != mediaType:
		return errors.New("the manifest that it sent has another media type than it was sent with")
	}
	isThere := func(member json.RawMessage) bool { return member != nil && string(member) != "null" }
	isIndex := mediaType == ocispec.MediaTypeImageIndex || mediaType == upstream.MediaTypeDockerList
	if isIndex && (isThere(d.Config) || isThere(d.Layers)) || !isIndex && isThere(d.Manifests) {
		return errors.New("the manifest that it sent is one of an image by its media type and an index by its content, or the other way round")
	}
	return nil
}

// maxBlobs bounds the blobs of an image that is made whole.
const maxBlobs = 1000

// makeWhole pulls what is missing of an image in the background. Machines ask for the same at the same time, but not
// for layers that they have.
func (h *Handler) makeWhole(q *request, manifest []byte) {
	var d struct {
		Config *ocispec.Descriptor  `json:"config"`
		Layers []ocispec.Descriptor `json:"layers"`
	}
	if json.Unmarshal(manifest, &d) != nil || d.Config == nil || len(d.Layers) > maxBlobs {
		return
	}
	var missing []digest.Digest
	for _, blob := range append([]ocispec.Descriptor{*d.Config}, d.Layers...) {
		if len(blob.URLs) > 0 || blob.Digest.Validate() != nil {
			continue // it is elsewhere
		}
		if file, err := h.Store.Blob(blob.Digest); err == nil {
			_ = file.Close()
		} else {
			missing = append(missing, blob.Digest)
		}
	}
	if len(missing) == 0 {
		return
	}
	h.mutex.Lock()
	may := h.whole.take(q.vpc)
	h.mutex.Unlock()
	if !may { // its machine pulls what it needs all the same
		return
	}
	in := *q
	in.Request = q.WithContext(h.life)
	go func() {
		defer func() {
			h.mutex.Lock()
			defer h.mutex.Unlock()
			h.whole.give(in.vpc)
		}()
		for _, sum := range missing {
			f, err := h.pull(&in, sum)
			if err == nil {
				err = f.wait(h.life)
			}
			if err != nil {
				h.Log.Warn("an image is not whole without its registry", "image", in.name(), "blob", sum.String(), "error", err)
				return
			}
		}
	}()
}
