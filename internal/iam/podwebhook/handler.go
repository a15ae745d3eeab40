// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/iam/podpatch"
)

// maxReview is how long a review may be: an object of the API server has 1.5 MiB at most, and the review little more.
const maxReview = 3 << 20

// The methods by which a pod gets credentials, as the metric names them.
const (
	methodWebIdentity = "sts_web_identity"
	methodContainer   = "container_credentials"
)

// mutator decides about pods.
type mutator struct {
	rules        podpatch.Rules
	accounts     *accounts
	associations *associations // nil without any
	grace        time.Duration
	metrics      *metrics
	log          *slog.Logger
}

// identity finds out how a pod gets credentials; method is empty for one that gets none.
func (m *mutator) identity(ctx context.Context, pod *corev1.Pod) (id podpatch.Identity, method string) {
	namespace, name := pod.Namespace, pod.Spec.ServiceAccountName
	if m.associations.has(namespace, name) {
		regional, expiration := m.accounts.view().Common(namespace, name)
		return m.rules.ContainerIdentity(pod, regional, expiration), methodContainer
	}
	e, known := m.accounts.find(ctx, namespace, name, m.grace)
	if !known {
		m.metrics.missing.Inc()
		m.log.Warn("a pod goes without AWS credentials: its service account is not known", "namespace", namespace, "service_account", name, "pod", nameOf(pod), "waited", m.grace)
		return podpatch.Identity{}, ""
	}
	if e.RoleARN == "" {
		return podpatch.Identity{}, ""
	}
	return m.rules.WebIdentity(pod, e), methodWebIdentity
}

func nameOf(pod *corev1.Pod) string {
	if pod.Name == "" {
		return pod.GenerateName
	}
	return pod.Name
}

// answer is the answer to a review: a pod is let in, always.
func (m *mutator) answer(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(request.Object.Raw, &pod); err != nil {
		return nil, errors.New("the object is not a pod")
	}
	pod.Namespace = request.Namespace // a pod that is being made may not say it
	out := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	id, method := m.identity(ctx, &pod)
	if method == "" {
		return out, nil
	}
	patch, err := json.Marshal(m.rules.Patch(&pod, id))
	if err != nil {
		return nil, errors.New("the patch cannot be written")
	}
	kind := admissionv1.PatchTypeJSONPatch
	out.Patch, out.PatchType = patch, &kind
	m.metrics.pods.WithLabelValues(method).Inc()
	m.log.Info("a pod has an AWS identity", "namespace", pod.Namespace, "pod", nameOf(&pod), "service_account", pod.Spec.ServiceAccountName, "method", method, "role", id.RoleARN)
	return out, nil
}

// ServeHTTP answers an AdmissionReview.
func (m *mutator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	defer func() { m.metrics.took.Observe(time.Since(began).Seconds()) }()
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" || r.Method != http.MethodPost {
		http.Error(w, "send an AdmissionReview by POST, as application/json", http.StatusUnsupportedMediaType)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
	if err != nil {
		http.Error(w, "the review cannot be read", http.StatusBadRequest)
		return
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(raw, &review); err != nil || review.Request == nil || review.APIVersion != admissionv1.SchemeGroupVersion.String() || review.Kind != "AdmissionReview" {
		http.Error(w, "send an AdmissionReview of admission.k8s.io/v1 with a request", http.StatusBadRequest)
		return
	}
	response, err := m.answer(r.Context(), review.Request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: response,
	})
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a lost caller has gone
}
