// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	webhook "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/iam/authenticatorconfig"
)

// freeAddress is one that nobody listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// served makes certificates and serves a world by them.
func served(t *testing.T, w *world, ready error) (kubeconfig, health string) {
	t.Helper()
	dir := t.TempDir()
	address := freeAddress(t)
	init := InitConfig{StateDir: filepath.Join(dir, "state"), Kubeconfig: filepath.Join(dir, "out", "kubeconfig.yaml"), Address: address, Now: time.Now()}
	if _, err := Init(init); err != nil {
		t.Fatal(err)
	}
	state := func(name string) string { return filepath.Join(init.StateDir, name) }
	s, err := Listen(t.Context(), ServerConfig{
		Address: address, Certificate: state(authenticatorconfig.CertificateFile), Key: state(authenticatorconfig.KeyFile), ClientCA: state(authenticatorconfig.ClientCAFile),
		Health: "127.0.0.1:0", Handler: w, Gatherer: w.registry, Ready: func() error { return ready }, Logger: slog.New(slog.DiscardHandler),
	})
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
	return init.Kubeconfig, s.HealthAddress().String()
}

// The client is the one that API servers have.
func TestAnAPIServerAsksByTheKubeconfigThatInitMade(t *testing.T) {
	w := newWorld(t, nil)
	kubeconfig, _ := served(t, w, nil)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v1beta1"} {
		hook, err := webhook.New(config, version, []string{"https://kubernetes.default.svc"}, wait.Backoff{Steps: 1})
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := hook.AuthenticateToken(t.Context(), w.token(t, "alice", 1))
		if err != nil || !ok || got.User.GetName() != "alice" || got.User.GetUID() != "aws-iam-authenticator:111122223333:AIDA0000000000000001" ||
			strings.Join(got.User.GetExtra()["arn"], "") != "arn:aws:iam::111122223333:user/alice" {
			t.Errorf("%s: %+v, %v, %v", version, got, ok, err)
		}
		if _, ok, err := hook.AuthenticateToken(t.Context(), "nonsense"); ok || err == nil { // an error is not kept, a "no" is for minutes
			t.Errorf("%s: nonsense is %v, %v", version, ok, err)
		}
	}
}

func TestWhoHasNoCertificateIsNotHeard(t *testing.T) {
	w := newWorld(t, nil)
	kubeconfig, _ := served(t, w, nil)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	asked := func(change func(*rest.Config)) error {
		c := rest.CopyConfig(config)
		change(c)
		transport, err := rest.TransportFor(c)
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host, strings.NewReader(tokenReview(t, authenticationv1.SchemeGroupVersion.String(), w.token(t, "alice", 1))))
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(r)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	if err := asked(func(*rest.Config) {}); err != nil {
		t.Errorf("with its certificate: %v", err)
	}
	if err := asked(func(c *rest.Config) { c.CertData, c.KeyData = nil, nil }); err == nil {
		t.Error("somebody without a certificate was answered")
	}
	other, _ := served(t, w, nil)
	foreign, err := clientcmd.BuildConfigFromFlags("", other)
	if err != nil {
		t.Fatal(err)
	}
	if err := asked(func(c *rest.Config) { c.CertData, c.KeyData = foreign.CertData, foreign.KeyData }); err == nil {
		t.Error("a certificate of another authority was believed")
	}
	if err := asked(func(c *rest.Config) { c.CAData = foreign.CAData }); err == nil {
		t.Error("a server with another certificate was believed")
	}
	address := strings.TrimSuffix(strings.TrimPrefix(config.Host, "https://"), "/authenticate")
	c, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

func TestHealthIsOpenAndMetricsAreNot(t *testing.T) {
	_, health := served(t, newWorld(t, nil), nil)
	_, sick := served(t, newWorld(t, nil), io.ErrUnexpectedEOF)
	for url, want := range map[string]string{
		health + "/healthz": "ok\n", health + "/readyz": "ok\n", sick + "/healthz": "ok\n", sick + "/readyz": "unexpected EOF\n",
		health + "/metrics": "404", health + "/authenticate": "404",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.Contains(string(body), want) || (response.StatusCode == http.StatusOK) != (want == "ok\n") {
			t.Errorf("%s: %d %.100s %v; want %s", url, response.StatusCode, body, err, want)
		}
	}
}

func TestWithoutClientCertificatesOnlyLoopbackIsServed(t *testing.T) {
	w := newWorld(t, nil)
	_, err := Listen(t.Context(), ServerConfig{Address: "0.0.0.0:0", Handler: w, Gatherer: w.registry, Ready: func() error { return nil }, Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Error(err)
	}
}

// Every local user reaches a webhook that asks for no certificates.
func TestMetricsOfTheWebhooksPortTakeACertificate(t *testing.T) {
	for _, clientCA := range []bool{true, false} {
		w, dir := newWorld(t, nil), t.TempDir()
		if _, err := Init(InitConfig{StateDir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), Address: "127.0.0.1:0", Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
		c := ServerConfig{
			Address: "127.0.0.1:0", Certificate: filepath.Join(dir, authenticatorconfig.CertificateFile), Key: filepath.Join(dir, authenticatorconfig.KeyFile),
			Handler: w, Gatherer: w.registry, Ready: func() error { return nil }, Logger: slog.New(slog.DiscardHandler),
		}
		if clientCA {
			c.ClientCA = filepath.Join(dir, authenticatorconfig.ClientCAFile)
		}
		s, err := Listen(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx) }()
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Address().String()+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if served := answer.StatusCode == http.StatusOK; served != clientCA {
			t.Errorf("with client certificates %t: %d", clientCA, answer.StatusCode)
		}
		transport.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestInitKeepsWhatIsGood(t *testing.T) {
	dir := t.TempDir()
	c := InitConfig{StateDir: filepath.Join(dir, "state"), Kubeconfig: filepath.Join(dir, "kubeconfig.yaml"), Address: "127.0.0.1:21362", Now: time.Now()}
	count := func() int {
		t.Helper()
		written, err := Init(c)
		if err != nil {
			t.Fatal(err)
		}
		return len(written)
	}
	if n := count(); n != 6 {
		t.Errorf("wrote %d files", n)
	}
	if n := count(); n != 0 {
		t.Errorf("wrote %d files again", n)
	}
	entries, err := os.ReadDir(c.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v: %v", e.Name(), info.Mode(), err)
		}
	}
	if err := os.Remove(filepath.Join(c.StateDir, authenticatorconfig.KeyFile)); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 3 { // the pair and the kubeconfig
		t.Errorf("wrote %d files for a key that is gone", n)
	}
	c.Address = "127.0.0.2:21362"
	if n := count(); n != 3 {
		t.Errorf("wrote %d files for another address", n)
	}
	c.Now = c.Now.AddDate(10, 0, 0)
	if n := count(); n != 6 {
		t.Errorf("wrote %d files ten years later", n)
	}
}
