// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"encoding/json"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/trace"
)

// The annotations that decisions leave behind.
const (
	// Annotation of requests and Events holds a decision in JSON.
	Annotation = "certificates.muster.dev/decision"
	// MachineAnnotation of requests holds the machine that one was approved for, as policy.MachineRef writes it.
	MachineAnnotation = "certificates.muster.dev/machine"
)

// record is the decision that stands in the request, if it can be believed.
func record(csr *certificatesv1.CertificateSigningRequest) (trace.Decision, bool) {
	if !Vouched(csr, Annotation) {
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

// Vouched tells whether an annotation was written through a subresource that takes the right to approve or sign, and through
// nothing else: nodes create requests with any annotations they like, but the API server notes who wrote which. A label of that
// name counts as having been written, too, which can only make this false.
func Vouched(csr *certificatesv1.CertificateSigningRequest, annotation string) bool {
	found := false
	key := []byte(`"f:` + annotation + `"`)
	for _, m := range csr.ManagedFields {
		if m.FieldsV1 == nil || !bytes.Contains(m.FieldsV1.GetRawBytes(), key) {
			continue
		}
		if m.Subresource != "approval" && m.Subresource != "status" {
			return false
		}
		found = true
	}
	return found
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
