// SPDX-License-Identifier: Apache-2.0

package nodeauthorizer

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// written writes a certificate and its key into one file.
func written(t *testing.T, name string, c *x509.Certificate, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	data := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Only who shows a client certificate of the API server's authority is answered.
func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	t.Parallel()
	authority, key := pkitest.Authority(t, "front-proxy", time.Now(), time.Hour)
	stranger, strangersKey := pkitest.Authority(t, "stranger", time.Now(), time.Hour)
	own := written(t, "own.pem", authority, key)
	s, err := Listen(t.Context(), ServerConfig{
		Address: "127.0.0.1:0", Certificate: own, Key: own, ClientCA: own, Handler: made(t, Config{Certificates: record{read: true}}), Logger: slog.New(slog.DiscardHandler),
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
	for name, tc := range map[string]struct {
		shown []tls.Certificate
		want  int
	}{
		"no certificate":          {nil, 0},
		"another authority's":     {[]tls.Certificate{{Certificate: [][]byte{stranger.Raw}, PrivateKey: strangersKey}}, 0},
		"the API server's, a GET": {[]tls.Certificate{{Certificate: [][]byte{authority.Raw}, PrivateKey: key}}, http.StatusMethodNotAllowed},
	} {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{Certificates: tc.shown, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Address().String()+"/authorize", nil)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		if answer, err := client.Do(r); err == nil {
			got = answer.StatusCode
			_ = answer.Body.Close()
		}
		if got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestListenWants(t *testing.T) {
	t.Parallel()
	if _, err := Listen(t.Context(), ServerConfig{Address: "127.0.0.1:0", Certificate: "c", Key: "k"}); err == nil || !strings.Contains(err.Error(), "the authority of callers") {
		t.Errorf("without an authority of callers: %v", err)
	}
}
