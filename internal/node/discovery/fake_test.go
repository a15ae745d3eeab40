// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cluster-bootstrap/token/jws"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/discovery"
)

const (
	id, half = "abcdef", "zyxwvutsrq987654"
	whole    = id + "." + half
)

func parse(t *testing.T, text string) token.Token {
	t.Helper()
	tok, err := token.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// authority signs certificates of servers.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

func (a authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// server makes the certificate of a server that is valid for an hour.
func (a authority) server(t *testing.T, change ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for _, c := range change {
		c(template)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// answer is what a fake API server says to one request.
type answer struct {
	status     int
	kubeconfig string
	signatures map[string]string
	body       string // instead of a ConfigMap
	header     http.Header
	cert       *tls.Certificate // instead of the server's
}

// fake is an API server that answers as it is told, request by request; the last answer goes on.
type fake struct {
	*httptest.Server
	cert tls.Certificate

	mu       sync.Mutex
	answers  []answer
	asked    int // requests
	shaken   int // handshakes
	headers  []http.Header
	requests []string
}

func newFake(t *testing.T, a authority, change ...func(*x509.Certificate)) *fake {
	t.Helper()
	f := &fake{cert: a.server(t, change...)}
	f.Server = httptest.NewUnstartedServer(f)
	f.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	f.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		given := f.at(f.shaken).cert
		f.shaken++
		if given == nil {
			given = &f.cert
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*given}}, nil
	}}
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// at is the answer to the nth request.
func (f *fake) at(n int) answer {
	if len(f.answers) == 0 {
		return answer{status: http.StatusNotFound}
	}
	return f.answers[min(n, len(f.answers)-1)]
}

func (f *fake) host() string { return strings.TrimPrefix(f.URL, "https://") }

func (f *fake) will(answers ...answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = answers
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	a := f.at(f.asked)
	f.asked++
	f.headers = append(f.headers, r.Header.Clone())
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	maps.Copy(w.Header(), a.header)
	if a.status != 0 && a.status != http.StatusOK {
		w.WriteHeader(a.status)
		return
	}
	if a.body != "" {
		_, _ = w.Write([]byte(a.body))
		return
	}
	data := map[string]string{"kubeconfig": a.kubeconfig}
	for k, v := range a.signatures {
		data["jws-kubeconfig-"+k] = v
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]string{"name": "cluster-info", "namespace": "kube-public"}, "data": data,
	})
}

// kubeconfig is cluster-info as kubeadm and muster write it.
func kubeconfig(server string, authorities ...authority) string {
	var ca strings.Builder
	for _, a := range authorities {
		ca.WriteString(a.pem())
	}
	return fmt.Sprintf("apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: %s\n    server: %s\n  name: \"\"\ncontexts: null\ncurrent-context: \"\"\nkind: Config\npreferences: {}\nusers: null\n",
		base64.StdEncoding.EncodeToString([]byte(ca.String())), server)
}

// signed is the answer of a cluster that knows the token.
func signed(t *testing.T, kubeconfig string) answer {
	t.Helper()
	signature, err := jws.ComputeDetachedSignature(kubeconfig, id, half)
	if err != nil {
		t.Fatal(err)
	}
	return answer{kubeconfig: kubeconfig, signatures: map[string]string{id: signature}}
}

// by is a Config for a fake with everything right.
func by(t *testing.T, f *fake, pins ...authority) discovery.Config {
	t.Helper()
	c := discovery.Config{Endpoint: f.host(), Token: parse(t, whole), Timeout: 2 * time.Second, Settle: time.Nanosecond}
	for _, a := range pins {
		c.CACertHashes = append(c.CACertHashes, discovery.Pin(a.cert))
	}
	return c
}
