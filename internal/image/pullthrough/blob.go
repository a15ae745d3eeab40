// SPDX-License-Identifier: Apache-2.0

package pullthrough

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/image/pulledstore"
)

// restTime is how long a client or a registry may rest in the middle of a blob.
const restTime = time.Minute

func (h *Handler) serveBlob(q *request) error {
	sum := digest.Digest(q.reference)
	file, err := h.Store.Blob(sum)
	if err == nil {
		q.result = kept
		return h.sendBlob(q, file)
	}
	if !errors.Is(err, pulledstore.ErrNotKept) {
		return err
	}
	q.result = pulled
	f, err := h.pull(q, sum)
	if err != nil {
		return err
	}
	file, size, err := f.open(q.Context())
	if err != nil {
		return err
	}
	if file == nil { // it is kept meanwhile
		if file, err = h.Store.Blob(sum); err != nil {
			return err
		}
		return h.sendBlob(q, file)
	}
	defer func() { _ = file.Close() }()
	header := q.answer.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Docker-Content-Digest", q.reference)
	if size >= 0 {
		header.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	q.answer.WriteHeader(http.StatusOK)
	if q.Method == http.MethodHead {
		return nil
	}
	if err := f.copy(q.Context(), patient{q.answer}, file); err != nil {
		return &cutError{err}
	}
	return nil
}

func (h *Handler) sendBlob(q *request, file interface {
	io.ReadSeeker
	io.Closer
},
) error {
	defer func() { _ = file.Close() }()
	header := q.answer.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Docker-Content-Digest", q.reference)
	header.Set("Etag", `"`+q.reference+`"`)
	http.ServeContent(patient{q.answer}, q.Request, "", time.Time{}, file) // ranges, for pulls that go on after a break
	return nil
}

// patient cuts a client off that does not read on.
type patient struct{ http.ResponseWriter }

// Write writes a part of an answer.
func (p patient) Write(part []byte) (int, error) {
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(restTime))
	return p.ResponseWriter.Write(part)
}
