// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// MaxBody is how large a TokenReview may be: a token of the right size in JSON, and room for other people's audiences.
const MaxBody = 64 << 10

// ServeHTTP answers POST /authenticate.
func (a *Authenticator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	malformed := func(ctx context.Context, status int, why string) {
		http.Error(w, why, status)
		a.record(ctx, Decision{Result: Malformed, Status: status, Rule: "request", Saw: why, Fix: "send a TokenReview by POST"}, r.RemoteAddr, time.Since(began))
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		malformed(r.Context(), http.StatusMethodNotAllowed, "expected POST")
		return
	}
	raw := bytes.NewBuffer(make([]byte, 0, bytes.MinRead+min(max(0, r.ContentLength), MaxBody)))
	if _, err := raw.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody)); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			malformed(r.Context(), http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", MaxBody))
			return
		}
		malformed(r.Context(), http.StatusBadRequest, "expected a request body")
		return
	}
	asked, err := readReview(raw.Bytes())
	if err != nil {
		malformed(r.Context(), http.StatusBadRequest, err.Error())
		return
	}
	d := a.Authenticate(r.Context(), asked.Spec.Token)
	good, ok := audiences(asked.Spec.Audiences, a.config.Audiences)
	if !ok && d.Status == http.StatusOK {
		d.Result, d.Status = InvalidForm, http.StatusForbidden
		d.Rule, d.Saw = "audience", fmt.Sprintf("asked for %.200q, and tokens are good for %q", strings.Join(asked.Spec.Audiences, " "), a.config.Audiences)
		d.Fix = "set server.audiences to what the API server's --api-audiences says, or leave it out"
	}
	a.record(r.Context(), d, r.RemoteAddr, time.Since(began))
	a.report(r, asked.Spec.Token, d)
	body, err := json.Marshal(asked.answer(d, good))
	if err != nil {
		http.Error(w, "could not write the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	writeReason(w.Header(), d)
	w.WriteHeader(d.Status)
	_, _ = w.Write(body) // a client that hung up does not need it
}
