// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/authority"
)

func (i *installation) copyFile(from, to string) {
	i.t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		i.t.Fatal(err)
	}
	if err := os.WriteFile(to, raw, 0o600); err != nil {
		i.t.Fatal(err)
	}
}

// asProbeOf asks the API server with a fresh client certificate of an authority whose key was kept.
func (i *installation) asProbeOf(pair string) int {
	i.t.Helper()
	dir := i.t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "kubelet"), 0o700); err != nil {
		i.t.Fatal(err)
	}
	i.copyFile(pair, filepath.Join(dir, "kubelet", "kubelet-1.pem"))
	probe, err := authority.NewStore(dir).Probe("kubelet-1", time.Now())
	if err != nil {
		i.t.Fatal(err)
	}
	code, err := i.apiServer().get(i.t.Context(), probe, "/version")
	if err != nil {
		i.t.Fatal(err)
	}
	return code
}

// apiServer makes a connection of its own for each request. It does not ask the service where to, which is killed
// meanwhile.
type apiServer struct {
	endpoint string
	pool     *x509.CertPool
}

func (i *installation) apiServer() apiServer {
	i.t.Helper()
	var ports struct {
		APIServer int `json:"apiServer"`
	}
	raw, err := os.ReadFile(i.cluster().Ports())
	if err == nil {
		err = json.Unmarshal(raw, &ports)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(i.cluster().PKI(), "cluster", "ca.pem"))
	if err != nil {
		i.t.Fatal(err)
	}
	a := apiServer{endpoint: fmt.Sprintf("https://127.0.0.1:%d", ports.APIServer), pool: x509.NewCertPool()}
	a.pool.AppendCertsFromPEM(ca)
	return a
}

// get asks with a certificate and returns the code of the answer.
func (a apiServer) get(ctx context.Context, certificate tls.Certificate, path string) (int, error) {
	code, _, err := a.ask(ctx, certificate, http.MethodGet, path, "")
	return code, err
}

// ask sends JSON, if any, with a certificate, and returns the code and the body of the answer.
func (a apiServer) ask(ctx context.Context, certificate tls.Certificate, method, path, body string) (int, string, error) {
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: a.pool, MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
	}}}
	request, err := http.NewRequestWithContext(ctx, method, a.endpoint+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(said), err
}
