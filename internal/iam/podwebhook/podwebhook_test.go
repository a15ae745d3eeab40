// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/iam/podwebhookconfig"
)

const role = "arn:aws:iam::111122223333:role/app"

// world is a webhook with a cluster in memory.
type world struct {
	*mutator
	client *fake.Clientset
}

func serviceAccount(name, role string) *corev1.ServiceAccount {
	s := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	if role != "" {
		s.Annotations = map[string]string{"eks.amazonaws.com/role-arn": role}
	}
	return s
}

func begin(t *testing.T, change func(*podwebhookconfig.Configuration), objects ...runtime.Object) world {
	t.Helper()
	client := fake.NewClientset(objects...)
	c := Config{Logger: slog.New(slog.DiscardHandler), File: podwebhookconfig.Configuration{ConfigMapNamespace: "kube-system", GracePeriod: "2s", Region: "eu-west-1"}}
	if change != nil {
		change(&c.File)
	}
	m, err := newMutator(c, client, newMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); m.accounts.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	eventually(t, m.accounts.synced)
	return world{m, client}
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
		<-time.After(2 * time.Millisecond)
	}
}

// number is what a metric says.
func number(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

// asks sends a review of a pod as an API server does, and returns the patch.
func (w world) asks(t testing.TB, account string) string {
	t.Helper()
	pod, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "app-"}, Spec: corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "app"}}}})
	if err != nil {
		t.Fatal(err)
	}
	review, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "u-1", Namespace: "a", Object: runtime.RawExtension{Raw: pod}},
	})
	if err != nil {
		t.Fatal(err)
	}
	status, body := w.post(t, "application/json", review)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		t.Fatal(status, string(body), err)
	}
	r := answer.Response
	if answer.APIVersion != "admission.k8s.io/v1" || r == nil || r.UID != "u-1" || !r.Allowed || (len(r.Patch) > 0) != (r.PatchType != nil) {
		t.Fatalf("%s", body)
	}
	return string(r.Patch)
}

func (w world) post(t testing.TB, kind string, body []byte) (int, []byte) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mutate", bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	raw, err := io.ReadAll(answer.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Code, raw
}

func TestPodsGetTheirIdentities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "associations.json")
	w := begin(t, func(c *podwebhookconfig.Configuration) { c.ContainerCredentials.File = file },
		serviceAccount("app", role), serviceAccount("plain", ""), serviceAccount("mapped", ""), serviceAccount("associated", role),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "pod-identity-webhook"}, Data: map[string]string{"config": `{"a/mapped":{"RoleARN":"` + role + `","Audience":"sts.amazonaws.com"}}`}})
	w.associations.look() // without a file nobody has an association
	if got := w.asks(t, "associated"); !strings.Contains(got, "AWS_ROLE_ARN") {
		t.Errorf("before there is an association: %s", got)
	}
	if err := os.WriteFile(file, []byte(`{"identities":[{"namespace":"a","serviceAccount":"associated"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.associations.look()
	for account, want := range map[string]string{
		"app": `{"name":"AWS_ROLE_ARN","value":"` + role + `"}`, "mapped": `{"name":"AWS_ROLE_ARN","value":"` + role + `"}`,
		"associated": `{"name":"AWS_CONTAINER_CREDENTIALS_FULL_URI","value":"http://169.254.170.23/v1/credentials"}`, "plain": "",
	} {
		if got := w.asks(t, account); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", account, got, want)
		}
	}
	if got := number(t, w.metrics.pods.WithLabelValues(methodWebIdentity)); got != 3 {
		t.Errorf("%v pods are counted", got)
	}
	// A damaged file takes nothing back.
	if err := os.WriteFile(file, []byte(`{"identities":[{"namespace":""}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.associations.look()
	if got := w.asks(t, "associated"); !strings.Contains(got, "FULL_URI") {
		t.Errorf("with a damaged file: %s", got)
	}
}

// A service account that comes a moment after its pod is waited for, and one that never comes keeps the pod no longer
// than the grace period.
func TestAServiceAccountThatIsLate(t *testing.T) {
	w := begin(t, nil)
	patch := make(chan string, 1)
	go func() { patch <- w.asks(t, "late") }()
	eventually(t, func() bool { w.accounts.mu.Lock(); defer w.accounts.mu.Unlock(); return len(w.accounts.waiting) == 1 })
	if _, err := w.client.CoreV1().ServiceAccounts("a").Create(t.Context(), serviceAccount("late", role), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := <-patch; !strings.Contains(got, role) {
		t.Errorf("the pod got %q", got)
	}
	w.grace = 20 * time.Millisecond
	if got := w.asks(t, "never"); got != "" || number(t, w.metrics.missing) != 1 || len(w.accounts.waiting) != 0 {
		t.Errorf("%q, %v missing, %d waiting", got, number(t, w.metrics.missing), len(w.accounts.waiting))
	}
	if err := w.client.CoreV1().ServiceAccounts("a").Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return w.asks(t, "late") == "" })
}

// A service account that the watch reports while the API server is being asked is newer than the answer.
func TestAnAnswerThatIsOlderThanTheWatch(t *testing.T) {
	w := begin(t, nil)
	w.client.PrependReactor("get", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		w.accounts.heard(serviceAccount("app", role+"-now"))
		return true, serviceAccount("app", role+"-before"), nil
	})
	w.accounts.ask("a", "app")
	if got := w.asks(t, "app"); !strings.Contains(got, role+"-now") {
		t.Errorf("the pod got %q", got)
	}
}

func TestReviewsThatAreRefused(t *testing.T) {
	w := begin(t, nil)
	for name, c := range map[string]struct {
		kind, body string
		want       int
	}{
		"another type":    {"text/plain", "{}", http.StatusUnsupportedMediaType},
		"no review":       {"application/json", "{}", http.StatusBadRequest},
		"another version": {"application/json", `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"1"}}`, http.StatusBadRequest},
		"no request":      {"application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, http.StatusBadRequest},
		"no pod":          {"application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","object":[]}}`, http.StatusBadRequest},
		"half":            {"application/json", `{"apiVersion":`, http.StatusBadRequest},
		"too long":        {"application/json", strings.Repeat(" ", maxReview+1), http.StatusBadRequest},
	} {
		if got, body := w.post(t, c.kind, []byte(c.body)); got != c.want {
			t.Errorf("%s: %d %s; want %d", name, got, body, c.want)
		}
	}
}

// Pods that were made while the webhook was away are told of, once each.
func TestPodsThatWentWithout(t *testing.T) {
	pod := func(name, account string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{ServiceAccountName: account}}
		if change != nil {
			change(p)
		}
		return p
	}
	w := begin(t, nil, serviceAccount("app", role), serviceAccount("plain", ""),
		pod("missed", "app", nil), pod("plain", "plain", nil),
		pod("good", "app", func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "aws-iam-token"}} }),
		pod("skipped", "app", func(p *corev1.Pod) { p.Labels = map[string]string{skipLabel: ""} }),
		pod("ended", "app", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
	refused := true
	w.client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, errors.New("not now")
	})
	m, other := &missed{client: w.client, mutator: w.mutator, log: slog.New(slog.DiscardHandler)}, &missed{client: w.client, mutator: w.mutator, log: slog.New(slog.DiscardHandler)}
	if err := m.look(t.Context()); err == nil || number(t, w.metrics.without) != 1 {
		t.Errorf("an Event that was refused: %v, %v pods", err, number(t, w.metrics.without))
	}
	refused = false
	for _, replica := range []*missed{m, m, other} {
		if err := replica.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	events, err := w.client.CoreV1().Events("a").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) != 1 || number(t, w.metrics.without) != 1 {
		t.Fatalf("%+v, %v, %v pods", events.Items, err, number(t, w.metrics.without))
	}
	if e := events.Items[0]; e.Type != "Warning" || e.Reason != "NoAWSIdentity" || e.InvolvedObject.Name != "missed" || !strings.Contains(e.Message, "The service account app has the role "+role) {
		t.Errorf("%+v", e)
	}
	if err := w.client.CoreV1().Pods("a").Delete(t.Context(), "missed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := m.look(t.Context()); err != nil || number(t, w.metrics.without) != 0 {
		t.Errorf("%v, %v pods", err, number(t, w.metrics.without))
	}
}

func TestTrust(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"none": "", "large": strings.Repeat("x", maxTrust+1)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readTrust(path); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	if _, err := readTrust(filepath.Join(dir, "missing")); err == nil {
		t.Error("a file that is not there was read")
	}
}

func FuzzReadIdentities(f *testing.F) {
	f.Add([]byte(`{"identities":[{"namespace":"a","serviceAccount":"b"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		named, err := readIdentities(raw)
		for key := range named {
			if err != nil || key.namespace == "" || key.name == "" {
				t.Fatalf("%+v, %v", key, err)
			}
		}
	})
}

func BenchmarkReview(b *testing.B) {
	w := world{}
	client := fake.NewClientset()
	m, err := newMutator(Config{Logger: slog.New(slog.DiscardHandler), File: podwebhookconfig.Configuration{GracePeriod: podwebhookconfig.None}}, client, newMetrics(prometheus.NewRegistry()))
	if err != nil {
		b.Fatal(err)
	}
	m.accounts.heard(serviceAccount("app", role))
	w.mutator = m
	for b.Loop() {
		if w.asks(b, "app") == "" {
			b.Fatal("no patch")
		}
	}
}
