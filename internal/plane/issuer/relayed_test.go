// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/platform/proxyheader"
	"muster.dev/muster/internal/platform/socketdir/socketdirtest"
)

const (
	issuerName = "oidc.example.com"
	someVPC    = "vpc-0123456789abcdef0"
)

// named issues a certificate for the issuers' name, and returns its file and who trusts it.
func named(t *testing.T) (string, *x509.CertPool) {
	t.Helper()
	store := authority.NewStore(filepath.Join(t.TempDir(), "pki"))
	c := authority.Credential{Name: "issuer", Authority: authority.Cluster, CommonName: "muster:issuer", DNSNames: []string{issuerName}}
	if _, err := store.Ensure([]authority.Credential{c}, time.Now()); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(store.AuthorityPath(authority.Cluster))
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		t.Fatal("reading the authority:", err)
	}
	return store.Path("issuer"), pool
}

// TestServeRelayed has a relay bring pods of two clusters: each is shown the certificate of the authority that it
// trusts.
func TestServeRelayed(t *testing.T) {
	file, _ := credential(t, filepath.Join(t.TempDir(), "pki"))
	blue, trustsBlue := named(t)
	green, trustsGreen := named(t)
	dir, err := os.MkdirTemp("", "is-") //nolint:usetesting // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s.sock")
	socketdirtest.Leave(t, socket)
	ctx, cancel := context.WithCancel(t.Context())
	ended, listening := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- Serve(ctx, ServerConfig{
			Address: address, Port: unused(t), Credential: file, Lookup: one, Log: slog.New(slog.DiscardHandler), Listening: func() { close(listening) },
			Socket: socket, CredentialOf: func(source netip.Addr, vpc string) string {
				if vpc == someVPC && netip.MustParsePrefix("10.244.0.0/16").Contains(source) {
					return blue
				}
				return green
			},
		})
	}()
	select {
	case <-listening:
	case err := <-ended:
		t.Fatal(err)
	}
	// ask is a pod's or a machine's connection, brought by the relay.
	ask := func(source string, trusts *x509.CertPool, header bool) error {
		raw, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		if header {
			if err := proxyheader.Write(raw, proxyheader.Header{Source: netip.MustParseAddrPort(source), Destination: netip.MustParseAddrPort("192.168.64.3:443"), VPC: someVPC}); err != nil {
				t.Fatal(err)
			}
		}
		if err := raw.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		client := tls.Client(raw, &tls.Config{RootCAs: trusts, ServerName: issuerName, MinVersion: tls.VersionTLS12})
		return client.HandshakeContext(t.Context())
	}
	for name, test := range map[string]struct {
		source string
		trusts *x509.CertPool
		header bool
		good   bool
	}{
		"a pod of blue":                     {"10.244.3.4:1024", trustsBlue, true, true},
		"a pod of blue that trusts another": {"10.244.3.4:1024", trustsGreen, true, false},
		"a machine":                         {"192.168.64.11:1024", trustsGreen, true, true},
		"nobody's":                          {"10.244.3.4:1024", trustsBlue, false, false},
	} {
		if err := ask(test.source, test.trusts, test.header); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others reach the socket: %v, %v", info, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestInVPC(t *testing.T) {
	for host, want := range map[string]string{
		"oidc.example.com": "oidc.example.com", "oidc.example.com:8443": "", "127.93.14.201": "", "127.93.14.201:20443": "",
	} {
		if got := (Endpoint{Host: host, Port: 443}).InVPC(); got != want {
			t.Errorf("%s is %q in a VPC", host, got)
		}
	}
}
