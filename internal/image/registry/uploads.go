// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"muster.dev/muster/internal/image/registrystore"
)

// ensure makes the repository of a push, if its sender may make it.
func (g *registry) ensure(q *request) error {
	_, err := g.Store.Get(q.repository)
	if !errors.Is(err, registrystore.ErrNoRepository) {
		return err
	}
	answer, asked := g.ask(q, q.repository, "ecr:CreateRepository")
	if asked != nil {
		return asked
	}
	if _, denied := answer.Denied["ecr:CreateRepository"]; denied {
		return err
	}
	if err := g.Store.Create(q.Context(), registrystore.Repository{Name: q.repository}); err != nil && !errors.Is(err, registrystore.ErrExists) {
		return err
	}
	return nil
}

func (g *registry) beginUpload(q *request) error {
	if err := g.ensure(q); err != nil {
		return err
	}
	query := q.URL.Query()
	if mounted, err := g.mount(q, query.Get("from"), query.Get("mount")); mounted || err != nil {
		return err
	}
	id, err := g.Store.Begin(q.Context(), q.repository)
	if err != nil {
		return err
	}
	q.reference = id
	if sum := query.Get("digest"); sum != "" { // all of it in one request
		if _, err := g.Store.Append(q.repository, id, 0, body{q}); err != nil {
			return err
		}
		return g.finish(q, sum)
	}
	return g.accepted(q, http.StatusAccepted, 0)
}

// mount gives the repository a blob of another one that the sender may pull from. If that cannot be, the blob is
// uploaded.
func (g *registry) mount(q *request, from, sum string) (bool, error) {
	if sum == "" || from == "" || registrystore.CheckName(from) != nil {
		return false, nil //nolint:nilerr // the blob is uploaded
	}
	const action = "ecr:GetDownloadUrlForLayer"
	answer, err := g.ask(q, from, action)
	if err != nil {
		return false, err
	}
	if _, denied := answer.Denied[action]; denied || g.Store.Mount(q.Context(), from, q.repository, digestOf(sum)) != nil {
		return false, nil //nolint:nilerr // the blob is uploaded
	}
	return true, g.created(q, sum)
}

func (g *registry) created(q *request, sum string) error {
	header := q.answer.Header()
	header.Set("Location", "/v2/"+q.repository+"/blobs/"+sum)
	header.Set("Docker-Content-Digest", sum)
	q.answer.WriteHeader(http.StatusCreated)
	return nil
}

// accepted says how far an upload is.
func (g *registry) accepted(q *request, status int, at int64) error {
	header := q.answer.Header()
	header.Set("Location", "/v2/"+q.repository+"/blobs/uploads/"+q.reference)
	header.Set("Docker-Upload-Uuid", q.reference)
	header.Set("Range", fmt.Sprintf("0-%d", max(at-1, 0)))
	header.Set("Content-Length", "0")
	q.answer.WriteHeader(status)
	return nil
}

// begins returns the offset at which a part of an upload begins, by its Content-Range; -1 without that header.
func begins(r *http.Request) (int64, error) {
	text := r.Header.Get("Content-Range")
	if text == "" {
		return -1, nil
	}
	first, _, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "-")
	at, err := strconv.ParseInt(first, 10, 64)
	if !ok || err != nil || at < 0 {
		return 0, &failure{http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID", fmt.Sprintf("Content-Range %.50q: it must be as 0-99", text)}
	}
	return at, nil
}

func (g *registry) appendUpload(q *request) error {
	from, err := begins(q.Request)
	if err != nil {
		return err
	}
	at, err := g.Store.Append(q.repository, q.reference, from, body{q})
	if err != nil {
		return err
	}
	return g.accepted(q, http.StatusAccepted, at)
}

func (g *registry) finishUpload(q *request) error {
	from, err := begins(q.Request)
	if err != nil {
		return err
	}
	sum := q.URL.Query().Get("digest")
	if sum == "" {
		return &failure{http.StatusBadRequest, "DIGEST_INVALID", "the parameter digest is missing"}
	}
	if q.ContentLength != 0 {
		if _, err := g.Store.Append(q.repository, q.reference, from, body{q}); err != nil {
			return err
		}
	}
	return g.finish(q, sum)
}

func (g *registry) finish(q *request, sum string) error {
	if err := g.Store.Finish(q.Context(), q.repository, q.reference, digestOf(sum)); err != nil {
		return err
	}
	return g.created(q, sum)
}

func (g *registry) showUpload(q *request) error {
	at, err := g.Store.Uploaded(q.repository, q.reference)
	if err != nil {
		return err
	}
	return g.accepted(q, http.StatusNoContent, at)
}

func (g *registry) abortUpload(q *request) error {
	if err := g.Store.Abort(q.repository, q.reference); err != nil {
		return err
	}
	q.answer.WriteHeader(http.StatusNoContent)
	return nil
}
