// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/component"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := authority.NewStore(dir)
	if _, err := store.Ensure([]authority.Credential{
		{Name: "probe", Authority: authority.Etcd, CommonName: "probe", Client: true, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
	}, time.Now()); err != nil {
		t.Fatal(err)
	}
	var answer http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
		case "/identity":
			if len(r.TLS.PeerCertificates) != 1 || r.TLS.PeerCertificates[0].Subject.CommonName != "probe" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		case "/long":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.Repeat("x", 1000))
		default:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "[+]ping ok\n[-]etcd failed: reason withheld\n[-]hooks failed\nreadyz check failed\n")
		}
	}
	server := httptest.NewUnstartedServer(answer)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(dir, "server-ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, test := range []struct {
		name  string
		probe component.Probe
		want  string // in the error; "" for ready
	}{
		{"ready", component.Probe{URL: server.URL + "/readyz", CAFile: ca}, ""},
		{"with its identity", component.Probe{URL: server.URL + "/identity", CAFile: ca, CredentialFile: store.Path("probe")}, ""},
		{"without", component.Probe{URL: server.URL + "/identity", CAFile: ca}, "answers 401"},
		{"not ready: which checks fail", component.Probe{URL: server.URL + "/no", CAFile: ca}, "/no answers 500: etcd failed: reason withheld; hooks failed"},
		{"long answers are cut", component.Probe{URL: server.URL + "/long", CAFile: ca}, "answers 500: " + strings.Repeat("x", 200)},
		{"another authority", component.Probe{URL: server.URL + "/readyz", CAFile: store.AuthorityPath(authority.Etcd)}, "unknown authority"},
		{"no authority yet", component.Probe{URL: server.URL + "/readyz", CAFile: filepath.Join(dir, "none")}, "reading authority"},
		{"no credential yet", component.Probe{URL: server.URL + "/readyz", CAFile: ca, CredentialFile: filepath.Join(dir, "none")}, "reading credential"},
		{"no socket yet", component.Probe{URL: "http://x/readyz", Socket: filepath.Join(dir, "none")}, "it does not listen at " + filepath.Join(dir, "none")},
		{"no port yet", component.Probe{URL: closed.URL + "/readyz"}, "it does not listen at " + closed.Listener.Addr().String()},
		{"no URL", component.Probe{URL: "://"}, "asking ://"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := probe(t.Context(), test.probe, 0)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
