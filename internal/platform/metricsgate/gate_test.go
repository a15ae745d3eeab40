// SPDX-License-Identifier: Apache-2.0

package metricsgate

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// world is an API server that knows some tokens, and lets the user prometheus and the group readers get /metrics.
type world struct {
	*Gate
	now     time.Time
	reviews int // of tokens and of access
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: time.Now()}
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		w.reviews++
		action, _ := a.(clienttesting.CreateAction)
		review, _ := action.GetObject().(*authenticationv1.TokenReview)
		switch review.Spec.Token {
		case "prometheus", "pod":
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: review.Spec.Token}}
		case "trouble":
			return true, nil, errors.New("no connection")
		}
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		w.reviews++
		action, _ := a.(clienttesting.CreateAction)
		review, _ := action.GetObject().(*authorizationv1.SubjectAccessReview)
		n := review.Spec.NonResourceAttributes
		isReader := review.Spec.User == "prometheus" || slices.Contains(review.Spec.Groups, "readers") && slices.Contains(review.Spec.Groups, "system:authenticated")
		review.Status.Allowed = isReader && n != nil && n.Path == "/metrics" && n.Verb == "get"
		return true, review, nil
	})
	gate, err := New(Config{
		Client: client, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return w.now },
		Next: http.HandlerFunc(func(a http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(a, "metrics") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Gate = gate
	return w
}

// ask asks with an Authorization header, and with a client certificate unless that is nil.
func (w *world) ask(t *testing.T, header string, certificate *x509.Certificate) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	r.TLS = &tls.ConnectionState{}
	if certificate != nil {
		r.TLS.PeerCertificates, r.TLS.VerifiedChains = []*x509.Certificate{certificate}, [][]*x509.Certificate{{certificate}}
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	if got := answer.Body.String() == "metrics"; got != (answer.Code == http.StatusOK) {
		t.Errorf("%d with metrics: %v", answer.Code, got)
	}
	return answer.Code
}

func TestWhoMayReadMetrics(t *testing.T) {
	w := newWorld(t)
	named := func(name string, groups ...string) *x509.Certificate {
		return &x509.Certificate{Raw: []byte(name), Subject: pkix.Name{CommonName: name, Organization: groups}}
	}
	for what, c := range map[string]struct {
		header      string
		certificate *x509.Certificate
		want        int
	}{
		"nobody":                          {"", nil, 401},
		"a password":                      {"Basic cHJvbWV0aGV1czo=", nil, 401},
		"an empty token":                  {"Bearer ", nil, 401},
		"a made-up token":                 {"Bearer made-up", nil, 401},
		"a token without the right":       {"Bearer pod", nil, 403},
		"a token that cannot be reviewed": {"Bearer trouble", nil, 503},
		"a token with the right":          {"Bearer prometheus", nil, 200},
		"a user":                          {"", named("prometheus"), 200},
		"a member of a group":             {"", named("alice", "readers"), 200},
		"a user without the right":        {"", named("system:node:one", "system:nodes"), 403},
		"a certificate without a name":    {"", named("", "readers"), 401},
		"a certificate before a token":    {"Bearer prometheus", named("system:node:one", "system:nodes"), 403},
	} {
		if got := w.ask(t, c.header, c.certificate); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
	unverified := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	unverified.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{named("prometheus")}}
	answer := httptest.NewRecorder()
	if w.ServeHTTP(answer, unverified); answer.Code != http.StatusUnauthorized {
		t.Errorf("a certificate that nobody verified: %d", answer.Code)
	}
}

func TestAnswersAboutCallersEnd(t *testing.T) {
	w := newWorld(t)
	expect := func(reviews int) {
		t.Helper()
		if got := w.ask(t, "Bearer prometheus", nil); got != http.StatusOK || w.reviews != reviews {
			t.Errorf("%d after %d reviews, want %d", got, w.reviews, reviews)
		}
	}
	expect(2)
	expect(2)
	w.now = w.now.Add(keeps)
	expect(4)
	for n := range 2 * holds {
		w.ask(t, "Bearer made-up-"+string(rune('a'+n)), nil)
	}
	if n := len(w.known); n > holds {
		t.Errorf("%d answers are kept", n)
	}
}
