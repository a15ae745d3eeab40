// SPDX-License-Identifier: Apache-2.0

package nodeauthorizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// maxBody is how large a SubjectAccessReview may be. Selectors, which a node writes, are the most of it.
const maxBody = 256 << 10

// ServeHTTP answers POST /authorize. An error makes the API server deny the request.
func (a *Authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, fmt.Sprintf("expected a SubjectAccessReview of at most %d bytes", maxBody), status)
		return
	}
	var review authorizationv1.SubjectAccessReview
	err = json.Unmarshal(raw, &review)
	if want := authorizationv1.SchemeGroupVersion.String(); err != nil || review.APIVersion != want || review.Kind != "SubjectAccessReview" {
		http.Error(w, "expected a SubjectAccessReview of "+want, http.StatusBadRequest)
		return
	}
	v := a.authorize(r.Context(), review.Spec)
	answer := authorizationv1.SubjectAccessReview{
		TypeMeta: review.TypeMeta, Status: authorizationv1.SubjectAccessReviewStatus{Denied: v.denied(), Reason: v.reason},
	}
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, "could not write the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // a client that hung up does not need it
}
