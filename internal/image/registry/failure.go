// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/iam/registrylogin"
	"muster.dev/muster/internal/image/registrystore"
)

// failure is an answer in the form of the distribution protocol.
type failure struct {
	status  int
	code    string
	message string
}

func (f *failure) Error() string { return f.code + ": " + f.message }

var errUnsupported = &failure{http.StatusMethodNotAllowed, "UNSUPPORTED", "the registry does not do this; images are removed by `aws ecr batch-delete-image`"}

// failureOf finds the answer to an error. An unknown error is the registry's own failure; its text is not told.
func (g *registry) failureOf(q *request, err error) *failure {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if no, ok := errors.AsType[*registrylogin.RefusedError](err); ok {
		return &failure{http.StatusUnauthorized, "UNAUTHORIZED", no.Reason}
	}
	if at, ok := errors.AsType[*registrystore.OffsetError](err); ok {
		return &failure{http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID", at.Error()}
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &failure{http.StatusRequestEntityTooLarge, "MANIFEST_INVALID", tooLarge.Error()}
	}
	switch {
	case errors.Is(err, registrystore.ErrNoRepository):
		return &failure{http.StatusNotFound, "NAME_UNKNOWN", "The repository with name '" + q.repository + "' does not exist in the registry with id '" + g.ID + "'"}
	case errors.Is(err, registrystore.ErrNoManifest):
		return &failure{http.StatusNotFound, "MANIFEST_UNKNOWN", "Requested image not found"}
	case errors.Is(err, registrystore.ErrNoBlob) && q.kind == kindManifest:
		return &failure{http.StatusNotFound, "MANIFEST_BLOB_UNKNOWN", err.Error()}
	case errors.Is(err, registrystore.ErrNoBlob):
		return &failure{http.StatusNotFound, "BLOB_UNKNOWN", err.Error()}
	case errors.Is(err, registrystore.ErrNoUpload):
		return &failure{http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", err.Error()}
	case errors.Is(err, registrystore.ErrBusy):
		return &failure{http.StatusConflict, "BLOB_UPLOAD_INVALID", err.Error()}
	case errors.Is(err, registrystore.ErrImmutable):
		return &failure{http.StatusBadRequest, "TAG_INVALID", "The image tag '" + q.reference + "' already exists in the '" + q.repository + "' repository and cannot be overwritten because the tag is immutable."}
	case errors.Is(err, registrystore.ErrInvalid) && q.kind == kindManifest:
		return &failure{http.StatusBadRequest, "MANIFEST_INVALID", err.Error()}
	case errors.Is(err, registrystore.ErrInvalid):
		return &failure{http.StatusBadRequest, "DIGEST_INVALID", err.Error()}
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return &failure{http.StatusInsufficientStorage, "UNKNOWN", "the disk of the registry is full: remove images, then try again"}
	case q.principal == "":
		return &failure{http.StatusServiceUnavailable, "UNAVAILABLE", "the account does not answer: try again, or see `muster status`"}
	}
	return &failure{http.StatusInternalServerError, "UNKNOWN", "the registry failed; its log says why"}
}

// fail answers an error, unless an answer has begun.
func (g *registry) fail(q *request, err error) {
	f := g.failureOf(q, err)
	if f.status >= http.StatusInternalServerError {
		g.Log.Error("registry request failed", "method", q.Method, "path", q.URL.Path, "error", err)
	}
	if q.answer.begun {
		_ = q.answer.control.SetWriteDeadline(time.Now()) // the client must not take what it has for the whole
		return
	}
	header := q.answer.Header()
	if f.status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Basic realm="muster",service="ecr.amazonaws.com"`)
	}
	if f.status == http.StatusServiceUnavailable {
		header.Set("Retry-After", "1")
	}
	type one struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	body, err := json.Marshal(map[string][]one{"errors": {{f.code, f.message}}})
	if err != nil {
		return
	}
	header.Set("Content-Type", "application/json")
	q.answer.WriteHeader(f.status)
	_, _ = q.answer.Write(body)
}

// restTime is how long a client may rest in the middle of a body.
const restTime = time.Minute

// recorder notes the answer's code, and cuts a client off that does not read on.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController
	code    int
	begun   bool
}

// WriteHeader begins an answer.
func (w *recorder) WriteHeader(code int) {
	w.code, w.begun = code, true
	w.ResponseWriter.WriteHeader(code)
}

// Write writes a part of an answer.
func (w *recorder) Write(part []byte) (int, error) {
	w.begun = true
	_ = w.control.SetWriteDeadline(time.Now().Add(restTime))
	return w.ResponseWriter.Write(part)
}

// body is a request's, whose sender is cut off if it sends nothing for a while.
type body struct{ *request }

// Read reads a part of a body.
func (b body) Read(part []byte) (int, error) {
	_ = b.answer.control.SetReadDeadline(time.Now().Add(restTime))
	return b.Body.Read(part)
}
