// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/trace"
)

// Annotation of requests and Events that holds a decision.
const Annotation = "certificates.muster.dev/decision"

// record is the decision that stands in the request, if it can be believed.
func record(csr *certificatesv1.CertificateSigningRequest) (trace.Decision, bool) {
	if !writtenByApprover(csr) {
		return trace.Decision{}, false
	}
	return decode(csr.Annotations[Annotation])
}

func decode(text string) (trace.Decision, bool) {
	var d trace.Decision
	if text == "" || json.Unmarshal([]byte(text), &d) != nil || d.Verdict == "" {
		return trace.Decision{}, false
	}
	return d, true
}

// writtenByApprover tells whether the API server saw the annotation being written through a subresource that takes the right to
// approve or to sign, and by nobody else.
func writtenByApprover(csr *certificatesv1.CertificateSigningRequest) bool {
	found := false
	for _, m := range csr.ManagedFields {
		if m.FieldsV1 == nil || !owns(m.FieldsV1.GetRawBytes()) {
			continue
		}
		if m.Subresource != "approval" && m.Subresource != "status" {
			return false
		}
		found = true
	}
	return found
}

func owns(fields []byte) bool {
	var f struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(fields, &f) != nil {
		return false
	}
	_, ok := f.Metadata.Annotations["f:"+Annotation]
	return ok
}

// latest is the newest Event about this very object.
func latest(csr *certificatesv1.CertificateSigningRequest, events []corev1.Event) *corev1.Event {
	var newest *corev1.Event
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.Kind != "CertificateSigningRequest" || e.InvolvedObject.Name != csr.Name || e.InvolvedObject.UID != csr.UID {
			continue
		}
		if newest == nil || when(newest) < when(e) {
			newest = e
		}
	}
	return newest
}

// when is the last time that an Event happened, in nanoseconds; its time stands in one of three fields.
func when(e *corev1.Event) int64 {
	latest := max(e.LastTimestamp.UnixNano(), e.EventTime.UnixNano())
	if e.Series != nil {
		latest = max(latest, e.Series.LastObservedTime.UnixNano())
	}
	return latest
}
