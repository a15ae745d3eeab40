// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/keyservice/keyservicetest"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

// authenticatorConfigOf reads a file that has what all of these tests need beside what is given. It tells where the
// certificates are.
func authenticatorConfigOf(t *testing.T, more string) (c Config, state string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	if _, err := authenticator.Init(authenticator.InitConfig{
		StateDir: state, Kubeconfig: filepath.Join(state, "kubeconfig"), Address: "127.0.0.1:0", Now: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	metrics := `metricsAddress: "127.0.0.1:0", `
	if strings.Contains(more, "fileOnly") {
		metrics = ""
	}
	file, err := authenticatorconfig.Read([]byte("apiVersion: " + authenticatorconfig.APIVersion + "\nkind: " + authenticatorconfig.Kind + "\nclusterID: demo\nserver: {bindAddress: \"127.0.0.1:0\", healthAddress: \"127.0.0.1:0\", " + metrics + "stateDir: " +
		state + "}\n" + more))
	if err != nil {
		t.Fatal(err)
	}
	return Config{File: file, Logger: slog.New(slog.DiscardHandler), Instances: instancesOfEC2}, state
}

// runningAuthenticator runs one until the test ends, and sees that it ends well.
func runningAuthenticator(t *testing.T, c Config) *authenticator.Server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan *authenticator.Server, 1), make(chan error, 1)
	c.listening = func(s *authenticator.Server) { listening <- s }
	go func() { ended <- Run(ctx, c) }()
	select {
	case err := <-ended:
		cancel()
		t.Fatal(err)
		return nil
	case s := <-listening:
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
		return s
	}
}

// eventually polls what takes goroutines of other packages.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

// health asks a path of the health address.
func health(t *testing.T, s *authenticator.Server, at string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.HealthAddress().String()+at, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// metricsOf reads metrics with a token, or with none if "".
func metricsOf(t *testing.T, s *authenticator.Server, state, token string) (int, string) {
	t.Helper()
	trusted, err := os.ReadFile(filepath.Join(state, authenticatorconfig.CertificateFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.MetricsAddress().String()+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// reviewOf asks as an API server does, with the certificate that init made.
func reviewOf(t *testing.T, s *authenticator.Server, state, token string) (int, string) {
	t.Helper()
	status, name, _ := reasonOf(t, s, state, token)
	return status, name
}

// reasonOf also tells why a token was refused.
func reasonOf(t *testing.T, s *authenticator.Server, state, token string) (int, string, authenticator.Reason) {
	t.Helper()
	own, err := tls.LoadX509KeyPair(filepath.Join(state, "client.pem"), filepath.Join(state, "client-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := os.ReadFile(filepath.Join(state, authenticatorconfig.CertificateFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	body, _ := json.Marshal(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": map[string]any{"token": token}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.Address().String()+"/authenticate", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		Status struct{ User struct{ Username string } }
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, got.Status.User.Username, authenticator.ReadReason(answer.Header)
}

// stsOf is the part of the file that sends what is meant for STS to one of the test's own.
func stsOf(t *testing.T, s *ststest.STS) string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "sts.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("sts: {ca: %s, endpoints: {%s: %q}}\n", ca, ststest.Host, s.URL)
}

func TestAnAuthenticatorOfACluster(t *testing.T) {
	alice := ststest.User("alice", 1)
	sts := ststest.New(t, alice, ststest.User("bob", 2))
	api := newAPIServer(t, "")
	c, state := authenticatorConfigOf(t, stsOf(t, sts))
	c.Kubeconfig = api.kubeconfig(t)
	s := runningAuthenticator(t, c)
	eventually(t, "it is ready", func() bool { status, _ := health(t, s, "/readyz"); return status == http.StatusOK })
	for _, tc := range []struct {
		key    ststest.Key
		status int
		name   string
	}{{alice, http.StatusOK, "alice"}, {ststest.User("bob", 2), http.StatusForbidden, ""}, {ststest.User("mallory", 3), http.StatusForbidden, ""}} {
		if status, name := reviewOf(t, s, state, ststest.Token(t, tc.key, "demo", time.Now())); status != tc.status || name != tc.name {
			t.Errorf("%s: %d %q, want %d %q", tc.key.ARN, status, name, tc.status, tc.name)
		}
	}
	if n := sts.Calls.Load(); n != 3 {
		t.Errorf("STS was asked %d times", n)
	}
	for token, want := range map[string]int{"": http.StatusUnauthorized, "made-up": http.StatusUnauthorized, "pod": http.StatusForbidden} {
		if status, metrics := metricsOf(t, s, state, token); status != want || strings.Contains(metrics, "aws_iam") {
			t.Errorf("metrics for the token %q: %d %.100s, want %d", token, status, metrics, want)
		}
	}
	if status, _ := health(t, s, "/metrics"); status != http.StatusNotFound {
		t.Errorf("metrics where health is: %d", status)
	}
	if status, metrics := metricsOf(t, s, state, "prometheus"); status != http.StatusOK || !strings.Contains(metrics, `aws_iam_authenticator_sts_responses_total{ResponseCode="200",StsRegion="eu-west-1"} 2`) {
		t.Error("metrics do not count the answers of STS")
	}
	eventually(t, "the entry says what is wrong", func() bool {
		applied, _ := api.status("wrong")
		return strings.Contains(applied, `"type":"Accepted"`) && strings.Contains(applied, `"status":"False"`) && strings.Contains(applied, "instance profile")
	})
	if _, unknown := api.status(""); len(unknown) > 0 { // a request that the chart's roles and docs lack would be refused
		t.Errorf("it also asked for %v", unknown)
	}
}

func TestAnAuthenticatorDoesNotGoBackInMode(t *testing.T) {
	api := newAPIServer(t, "API")
	c, _ := authenticatorConfigOf(t, stsOf(t, ststest.New(t)))
	c.Kubeconfig = api.kubeconfig(t)
	if err := Run(t.Context(), c); !errors.Is(err, authenticator.ErrMode) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAnAuthenticatorOfAFileAsksNoCluster(t *testing.T) {
	alice := ststest.User("alice", 1)
	mappings := filepath.Join(t.TempDir(), "mappings.yaml")
	if err := os.WriteFile(mappings, []byte("mapUsers:\n- {userarn: "+alice.ARN+", username: al}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, state := authenticatorConfigOf(t, stsOf(t, ststest.New(t, alice))+"mapping: {file: "+mappings+", fileOnly: true}\n")
	c.Kubeconfig = filepath.Join(state, "there-is-none")
	s := runningAuthenticator(t, c)
	eventually(t, "it is ready", func() bool { status, _ := health(t, s, "/readyz"); return status == http.StatusOK })
	if status, name := reviewOf(t, s, state, ststest.Token(t, alice, "demo", time.Now())); status != http.StatusOK || name != "al" {
		t.Errorf("%d %q", status, name)
	}
}

func TestAnAuthenticatorIsNotReadyWithoutTheIdentityService(t *testing.T) {
	mappings := filepath.Join(t.TempDir(), "mappings.yaml")
	if err := os.WriteFile(mappings, []byte("mapUsers: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, state := authenticatorConfigOf(t, musterBackend("/does/not/exist.sock", keyservicetest.New(t).Caller(t, caller.Authenticator("demo", "0A1B")))+"mapping: {file: "+mappings+", fileOnly: true}\n")
	s := runningAuthenticator(t, c)
	eventually(t, "it says so", func() bool {
		status, why := health(t, s, "/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(why, "the identity service does not answer on /does/not/exist.sock")
	})
	if status, _ := reviewOf(t, s, state, ststest.Token(t, ststest.User("alice", 1), "demo", time.Now())); status != http.StatusServiceUnavailable {
		t.Errorf("it answers %d", status)
	}
}

func TestWhatKeepsAnAuthenticatorFromStarting(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		more, kubeconfig, says string
		without                bool
	}{
		"no kubeconfig":                 {kubeconfig: "/does/not/exist", says: "reading kubeconfig /does/not/exist"},
		"no file of mappings":           {more: "mapping: {file: /does/not/exist, fileOnly: true}", says: "/does/not/exist"},
		"no authority of STS":           {more: "sts: {ca: /does/not/exist}\nmapping: {file: " + empty + ", fileOnly: true}", says: "reading sts.ca"},
		"an authority that is empty":    {more: "sts: {ca: " + empty + "}\nmapping: {file: " + empty + ", fileOnly: true}", says: "holds no certificate"},
		"no authority of the account":   {more: musterBackend("/s", keyservicetest.Credential{CA: "/does/not/exist", File: empty}) + "mapping: {file: " + empty + ", fileOnly: true}", says: "reading the account's authority: open /does/not/exist"},
		"no credential for the account": {more: musterBackend("/s", keyservicetest.Credential{CA: keyservicetest.New(t).Account(t).CA, File: empty}) + "mapping: {file: " + empty + ", fileOnly: true}", says: "reading the credential for the account"},
		"no serving certificate":        {more: "mapping: {file: " + empty + ", fileOnly: true}", says: "/does/not/exist", without: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := authenticatorConfigOf(t, tc.more)
			if tc.without {
				c.File.Server.Certificate = "/does/not/exist"
			}
			c.Kubeconfig = tc.kubeconfig
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.listening = func(*authenticator.Server) { t.Error("it listens"); cancel() }
			if err := Run(ctx, c); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %q", err, tc.says)
			}
		})
	}
}
