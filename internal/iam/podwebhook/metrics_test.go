// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/iam/podwebhookconfig"
	"muster.dev/muster/internal/platform/httpserve"
)

// serving writes the certificate and key of a server of httptest, and returns a client that trusts it.
func serving(t *testing.T) (path string, client *http.Client) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	content = append(content, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	path = filepath.Join(t.TempDir(), "tls.pem")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, server.Client()
}

// Health is open to everybody, and metrics are for those alone who may get them from the API server.
func TestMetricsAreForThoseWhoMay(t *testing.T) {
	w := begin(t, nil)
	w.client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		action, _ := a.(clienttesting.CreateAction)
		review, _ := action.GetObject().(*authenticationv1.TokenReview)
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: review.Spec.Token != "made-up", User: authenticationv1.UserInfo{Username: review.Spec.Token}}
		return true, review, nil
	})
	w.client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		action, _ := a.(clienttesting.CreateAction)
		review, _ := action.GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = review.Spec.User == "prometheus"
		return true, review, nil
	})
	path, client := serving(t)
	c := Config{Logger: slog.New(slog.DiscardHandler), File: podwebhookconfig.Configuration{Server: podwebhookconfig.Server{
		BindAddress: "127.0.0.1:0", Certificate: path, Key: path, Health: "127.0.0.1:0", Metrics: "127.0.0.1:0",
	}}}
	ports := httpserve.Set{Logger: c.Logger, Grace: grace}
	opened, err := serve(t.Context(), &ports, c, w.mutator, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := serveMetrics(t.Context(), &ports, c, w.client, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ports.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for what, test := range map[string]struct {
		url, token string
		want       int
	}{
		"health":                  {"http://" + opened.String() + "/healthz", "", 200},
		"metrics where health is": {"http://" + opened.String() + "/metrics", "prometheus", 404},
		"no token":                {"https://" + metrics.String() + "/metrics", "", 401},
		"a made-up token":         {"https://" + metrics.String() + "/metrics", "made-up", 401},
		"another's token":         {"https://" + metrics.String() + "/metrics", "pod", 403},
		"one that may":            {"https://" + metrics.String() + "/metrics", "prometheus", 200},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if test.token != "" {
			request.Header.Set("Authorization", "Bearer "+test.token)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode != test.want {
			t.Errorf("%s: %d, want %d", what, answer.StatusCode, test.want)
		}
	}
}
