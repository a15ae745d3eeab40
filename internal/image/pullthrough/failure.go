// SPDX-License-Identifier: Apache-2.0

package pullthrough

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/image/upstream"
	"muster.dev/muster/internal/platform/blobstore"
)

// failure is an answer in the form of the distribution protocol.
type failure struct {
	status  int
	code    string
	message string
}

func (f *failure) Error() string { return f.code + ": " + f.message }

// isAnswer reports whether an error is a registry's answer about an image. Any other means that the registry cannot be
// had.
func isAnswer(err error) bool {
	status, ok := errors.AsType[*upstream.StatusError](err)
	return ok && status.Status < http.StatusInternalServerError && status.Status != http.StatusTooManyRequests
}

// failureOf finds the answer to an error.
func failureOf(err error) *failure {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if status, ok := errors.AsType[*upstream.StatusError](err); ok {
		switch status.Status {
		case http.StatusNotFound:
			return &failure{http.StatusNotFound, "MANIFEST_UNKNOWN", status.Error()}
		case http.StatusUnauthorized, http.StatusForbidden: // machines have no password to try
			return &failure{http.StatusForbidden, "DENIED", status.Error()}
		case http.StatusTooManyRequests:
			return &failure{http.StatusTooManyRequests, "TOOMANYREQUESTS", status.Error()}
		}
		return &failure{http.StatusBadGateway, "UNAVAILABLE", status.Error()}
	}
	if no, ok := errors.AsType[*upstream.RefusedError](err); ok {
		return &failure{http.StatusForbidden, "DENIED", no.Error()}
	}
	if wrong, ok := errors.AsType[*blobstore.DigestError](err); ok {
		return &failure{http.StatusBadGateway, "DIGEST_INVALID", "the registry sent something else: " + wrong.Error()}
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return &failure{http.StatusInsufficientStorage, "UNKNOWN", "the disk of the host is full"}
	}
	return &failure{http.StatusBadGateway, "UNAVAILABLE", err.Error()}
}

// cutError ends an answer that has begun.
type cutError struct{ cause error }

func (e *cutError) Error() string { return e.cause.Error() }
func (e *cutError) Unwrap() error { return e.cause }

// fail answers an error, unless an answer has begun.
func (h *Handler) fail(q *request, err error) {
	control := http.NewResponseController(q.answer)
	if _, cut := errors.AsType[*cutError](err); cut {
		_ = control.SetWriteDeadline(time.Now()) // the client must not take what it has for the whole
		return
	}
	f := failureOf(err)
	if f.status == http.StatusForbidden {
		q.result = refused
	}
	if q.kind == "manifests" {
		f = h.shown(q, f)
	}
	type one struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	body, err := json.Marshal(map[string][]one{"errors": {{f.code, f.message}}})
	if err != nil {
		return
	}
	q.answer.Header().Set("Content-Type", "application/json")
	q.answer.WriteHeader(f.status)
	_, _ = q.answer.Write(body)
}

const (
	// recallTime is how long the failure of a HEAD is the answer to a GET for the same. containerd sends the one right
	// after the other, and a registry that does not answer would be waited for twice.
	recallTime = 5 * time.Second
	// maxTold bounds the failures that are remembered.
	maxTold = 1024
)

// told is a failure that a HEAD was answered with.
type told struct {
	failure *failure
	until   time.Time
}

// shown is a failure about a manifest in the form in which people see why it is. A pod's Event shows the words of an
// answer only if HEAD is answered with 403, and the GET that follows is, too (containerd,
// core/remotes/docker/resolver.go); of every other code it shows the code alone. The code in the body is as before.
func (h *Handler) shown(q *request, f *failure) *failure {
	if f.status >= http.StatusTooManyRequests {
		f = &failure{http.StatusForbidden, f.code, f.message}
	}
	if q.Method != http.MethodHead || f.status != http.StatusForbidden || q.Context().Err() != nil { // of a client that went away nothing is known
		return f
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.told) >= maxTold {
		clear(h.told)
	}
	h.told[q.toldKey()] = told{f, time.Now().Add(recallTime)}
	return f
}

// toldKey is what a failure was about, and whose request it was: no pod's failure is another one's.
type toldKey struct {
	place
	client, path string
}

func (q *request) toldKey() toldKey {
	client, _, _ := net.SplitHostPort(q.RemoteAddr)
	return toldKey{q.place, client, q.URL.Path}
}

// recall is the failure with which a HEAD for the same was answered a moment ago, for the GET that follows it; nil if
// there was none.
func (h *Handler) recall(q *request) error {
	if q.Method == http.MethodHead {
		return nil
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	key := q.toldKey()
	before, ok := h.told[key]
	delete(h.told, key)
	if !ok || time.Now().After(before.until) {
		return nil
	}
	return before.failure
}
