// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func serverConfig() ServerConfig {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_test_total"}))
	return ServerConfig{Gatherer: registry, Ready: func() error { return nil }, Logger: slog.New(slog.DiscardHandler)}
}

// served starts a server and returns what a GET answers.
func served(t *testing.T, c ServerConfig) func(url, token string) (int, string) {
	t.Helper()
	s, err := Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	return func(url, token string) (int, string) {
		t.Helper()
		at := s.HealthAddress()
		if strings.HasSuffix(url, "/metrics") {
			at = s.MetricsAddress()
		}
		_, port, err := net.SplitHostPort(at.String())
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(url, "host", "127.0.0.1:"+port, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
}

func TestListenRefuses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*ServerConfig)
		want   string
	}{
		{"no address", func(c *ServerConfig) { c.Health = "localhost:0" }, "not an IP"},
		{"no host", func(c *ServerConfig) { c.Health = ":0" }, "not an IP"},
		{"no port", func(c *ServerConfig) { c.Metrics = "127.0.0.1" }, "not an IP"},
		{"a port too high", func(c *ServerConfig) { c.Metrics = "127.0.0.1:99999" }, "not an IP"},
		{"metrics and nobody who says who may", func(c *ServerConfig) { c.Metrics = "127.0.0.1:0" }, "a client of the API server"},
		{"a certificate without key", func(c *ServerConfig) {
			c.Metrics, c.Client, c.CertFile = "[::]:0", fake.NewClientset(), "/x"
		}, "both a certificate and a key"},
		{"a certificate that is not there", func(c *ServerConfig) {
			c.Metrics, c.Client, c.CertFile, c.KeyFile = "[::]:0", fake.NewClientset(), "/nowhere/x", "/nowhere/y"
		}, "no such file"},
		{"client certificates without a serving one", func(c *ServerConfig) {
			c.Metrics, c.Client, c.ClientCA = "127.0.0.1:0", fake.NewClientset(), "/x"
		}, "need a serving certificate"},
		{"one port for both", func(c *ServerConfig) { c.Health, c.Metrics = "0.0.0.0:9", "0.0.0.0:9" }, "opening the port for metrics"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := serverConfig()
			tc.change(&c)
			if _, err := Listen(t.Context(), c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestHealthIsOpen(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::ffff:127.0.0.1]:0"} {
		var ready atomic.Bool
		c := serverConfig()
		c.Health = address
		c.Ready = func() error {
			if !ready.Load() {
				return errors.New("machines have not been read yet")
			}
			return nil
		}
		get := served(t, c)
		for _, tc := range []struct {
			path string
			code int
			text string
		}{
			{"/healthz", 200, "ok"}, {"/readyz", 503, "machines have not been read yet"}, {"/", 404, ""},
		} {
			if code, text := get("http://host"+tc.path, ""); code != tc.code || !strings.Contains(text, tc.text) {
				t.Errorf("%s: %d %s", tc.path, code, text)
			}
		}
		ready.Store(true)
		if code, _ := get("http://host/readyz", ""); code != 200 {
			t.Errorf("ready: %d", code)
		}
	}
}

// reviewed is a client that knows two tokens. One token may get /metrics.
func reviewed() (*fake.Clientset, *atomic.Int32) {
	client, asked := fake.NewClientset(), &atomic.Int32{}
	client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		asked.Add(1)
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
		action, _ := a.(clienttesting.CreateAction)
		review, _ := action.GetObject().(*authorizationv1.SubjectAccessReview)
		n := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && n != nil && n.Path == "/metrics" && n.Verb == "get"
		return true, review, nil
	})
	return client, asked
}

// Metrics are for those who may get them, on loopback too: every local user reaches it.
func TestServeMetricsToThoseWhoMay(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "127.0.0.1:0"} {
		c := serverConfig()
		client, asked := reviewed()
		c.Metrics, c.Client = address, client
		get := served(t, c)
		for _, tc := range []struct {
			url, token string
			code       int
			text       string
		}{
			{"http://host/metrics", "prometheus", 400, "HTTPS"},
			{"https://host/metrics", "", 401, "bearer token"},
			{"https://host/metrics", "made-up", 401, "not valid"},
			{"https://host/metrics", "pod", 403, "nonResourceURLs"},
			{"https://host/metrics", "trouble", 503, "could not be asked"},
			{"https://host/metrics", "prometheus", 200, "muster_test_total 0"},
			{"https://host/metrics", "prometheus", 200, "muster_test_total 0"},
		} {
			if code, text := get(tc.url, tc.token); code != tc.code || !strings.Contains(text, tc.text) || code != 200 && strings.Contains(text, "muster_test_total") {
				t.Errorf("%s as %q: %d %s", tc.url, tc.token, code, text)
			}
		}
		if n := asked.Load(); n != 4 {
			t.Errorf("%d reviews of four tokens: an answer is kept, an error is not", n)
		}
	}
}
