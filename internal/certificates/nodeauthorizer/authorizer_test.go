// SPDX-License-Identifier: Apache-2.0

package nodeauthorizer

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// record knows the machine of one certificate, of node a.
type record struct {
	read    bool
	machine policy.MachineRef
	unknown bool
}

func (r record) HasSynced() bool { return r.read }

func (r record) Credential(node string, id pki.Fingerprint) policy.Fact[policy.Credential] {
	if r.unknown {
		return policy.DontKnow[policy.Credential]("record", "a segment is damaged")
	}
	if node != "a" || id != (pki.Fingerprint{1}) {
		return policy.Know(policy.Credential{}, "record", time.Time{})
	}
	return policy.Know(policy.Credential{Machine: r.machine}, "record", time.Time{})
}

type list map[string]policy.Fact[policy.Machine]

func (l list) LastSeen(id string) policy.Fact[policy.Machine] {
	if f, ok := l[id]; ok {
		return f
	}
	return policy.None[policy.Machine]("machines", time.Time{})
}

func made(t *testing.T, c Config) *Authorizer {
	t.Helper()
	a, _ := counted(t, c)
	return a
}

// counted is an Authorizer, and what its metric says.
func counted(t *testing.T, c Config) (*Authorizer, func() map[string]float64) {
	t.Helper()
	if c.Machines == nil {
		c.Machines = map[string]Machines{"machines": list{
			"i-1":   policy.Know(policy.Machine{ID: "i-1"}, "machines", time.Time{}),
			"i-old": policy.Know(policy.Machine{ID: "i-old", Deleting: true}, "machines", time.Time{}),
			"i-?":   policy.DontKnow[policy.Machine]("machines", "it has not been read yet"),
		}}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Starting == 0 {
		c.Starting = time.Nanosecond
	}
	registry := prometheus.NewRegistry()
	c.Metrics = registry
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a, func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "muster_certificates_node_requests_total" {
			t.Fatalf("%v, %v", families, err)
		}
		values := map[string]float64{}
		for _, m := range families[0].GetMetric() {
			values[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
		return values
	}
}

// by is what an API server says of a node that shows a certificate.
func by(user string, id pki.Fingerprint) authorizationv1.SubjectAccessReviewSpec {
	return authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{"system:nodes"}, Extra: map[string]authorizationv1.ExtraValue{
		"authentication.kubernetes.io/credential-id": {"X509SHA256=" + hex.EncodeToString(id[:])},
	}}
}

func TestACertificateOfAMachineThatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		record record
		spec   authorizationv1.SubjectAccessReviewSpec
		want   result
		says   string
	}{
		{"a machine", record{read: true, machine: "machines|i-1"}, by("system:node:a", pki.Fingerprint{1}), noOpinion, ""},
		{"a machine that is drained", record{read: true, machine: "machines|i-old"}, by("system:node:a", pki.Fingerprint{1}), noOpinion, ""},
		{"a machine that is gone", record{read: true, machine: "machines|i-2"}, by("system:node:a", pki.Fingerprint{1}), gone, "machine i-2, which is gone"},
		{"another certificate of its node", record{read: true, machine: "machines|i-2"}, by("system:node:a", pki.Fingerprint{2}), noOpinion, ""},
		{"another node's", record{read: true, machine: "machines|i-2"}, by("system:node:b", pki.Fingerprint{1}), noOpinion, ""},
		{"a host that was registered", record{read: true, machine: "static|host-a"}, by("system:node:a", pki.Fingerprint{1}), noOpinion, ""},
		{"an ID of no source", record{read: true, machine: "i-2"}, by("system:node:a", pki.Fingerprint{1}), noOpinion, ""},
		{"on no record", record{read: true}, by("system:node:a", pki.Fingerprint{1}), noOpinion, ""},
		{"a damaged record", record{read: true, unknown: true}, by("system:node:a", pki.Fingerprint{1}), noOpinion, ""},
		{"before the record was read", record{machine: "machines|i-1"}, by("system:node:a", pki.Fingerprint{1}), unread, "the record of issued certificates has not been read yet"},
		{"before the machines were read", record{read: true, machine: "machines|i-?"}, by("system:node:a", pki.Fingerprint{1}), unread, "machines: it has not been read yet"},
		{"a node with a token", record{}, authorizationv1.SubjectAccessReviewSpec{User: "system:node:a"}, noOpinion, ""},
		{"a person", record{}, by("jane", pki.Fingerprint{1}), noOpinion, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, answers := counted(t, Config{Certificates: tc.record})
			code, got := asked(t, a, tc.spec)
			if code != http.StatusOK || got.Status.Allowed || got.Status.Denied != (tc.want != noOpinion) || !strings.Contains(got.Status.Reason, tc.says) || (tc.says == "") != (got.Status.Reason == "") {
				t.Errorf("%d, %+v; want %s, %q", code, got.Status, tc.want, tc.says)
			}
			if diff := cmp.Diff(map[string]float64{string(tc.want): 1}, answers()); diff != "" {
				t.Errorf("the metric (-want +got):\n%s", diff)
			}
		})
	}
}

func asked(t *testing.T, a *Authorizer, spec authorizationv1.SubjectAccessReviewSpec) (int, authorizationv1.SubjectAccessReview) {
	t.Helper()
	review := authorizationv1.SubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}, Spec: spec}
	raw, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/authorize", bytes.NewReader(raw)))
	var answer authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if answer.APIVersion != review.APIVersion || answer.Kind != review.Kind {
		t.Errorf("the answer is a %s of %s", answer.Kind, answer.APIVersion)
	}
	return w.Code, answer
}

// growing is a record that has been read once somebody has asked some times.
type growing struct {
	record
	asked *atomic.Int32
}

func (g growing) HasSynced() bool { return g.asked.Add(1) > 3 }

// A program that was just started has requests wait for the record. A program that has not read the record for long
// refuses them at once.
func TestRequestsWaitWhileTheProgramStarts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		starting time.Duration
		denied   bool
	}{"just started": {time.Minute, false}, "started long ago": {time.Nanosecond, true}} {
		a, answers := counted(t, Config{Certificates: growing{record{read: true, machine: "machines|i-1"}, new(atomic.Int32)}, Starting: c.starting})
		_, got := asked(t, a, by("system:node:a", pki.Fingerprint{1}))
		if got.Status.Denied != c.denied {
			t.Errorf("%s: %+v, want denied %t", name, got.Status, c.denied)
		}
		if n := answers(); len(n) != 1 {
			t.Errorf("%s: counted %v", name, n)
		}
	}
	a := made(t, Config{Certificates: record{}, Starting: time.Minute})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if v := a.authorize(ctx, by("system:node:a", pki.Fingerprint{1})); v.result != unread {
		t.Errorf("an API server that hung up: %v", v)
	}
}

// An API server denies what is answered with an error.
func TestWhatIsNotAReviewIsAnError(t *testing.T) {
	t.Parallel()
	a := made(t, Config{Certificates: record{read: true}})
	for body, want := range map[string]int{
		"":   http.StatusBadRequest,
		"{}": http.StatusBadRequest,
		`{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview"}`: http.StatusBadRequest,
		`{"apiVersion":"authorization.k8s.io/v1","kind":"TokenReview"}`:              http.StatusBadRequest,
		strings.Repeat(" ", maxBody+1):                                               http.StatusRequestEntityTooLarge,
	} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/authorize", strings.NewReader(body)))
		if w.Code != want || !strings.Contains(w.Body.String(), "expected a SubjectAccessReview") {
			t.Errorf("%.60q: %d %s; want %d", body, w.Code, w.Body, want)
		}
	}
}

func TestARefusalIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(1_000_000, 0)
	a := made(t, Config{Certificates: record{read: true, machine: "machines|i-2"}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }})
	for _, after := range []time.Duration{0, 59 * time.Second, time.Second} {
		now = now.Add(after)
		a.authorize(t.Context(), by("system:node:a", pki.Fingerprint{1}))
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "node=a certificate=01000000") || !strings.Contains(got, "i-2, which is gone") {
		t.Errorf("the log says:\n%s", got)
	}
}

func TestNewWants(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{Certificates: record{}, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "a source of machines") {
		t.Errorf("without machines: %v", err)
	}
}
