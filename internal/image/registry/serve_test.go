// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"

	"muster.dev/muster/internal/platform/proxyheader"
)

// A request of a machine knows its address and its VPC, by what the relay says alone.
func TestVPC(t *testing.T) {
	certified := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	t.Cleanup(certified.Close)
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, VPC(r)+" "+source(r)) })
	header := proxyheader.Header{Source: netip.MustParseAddrPort("172.31.0.5:40000"), Destination: netip.MustParseAddrPort("172.31.0.3:443"), VPC: "vpc-0123456789abcdef0"}
	for name, c := range map[string]struct {
		serve func(context.Context, net.Listener, *tls.Config, http.Handler, *slog.Logger) error
		begin func(io.Writer) error
		want  string
	}{
		"a machine": {ServeRelayed, func(w io.Writer) error { return proxyheader.Write(w, header) }, "vpc-0123456789abcdef0 172.31.0.5"},
		"a person":  {Serve, func(io.Writer) error { return nil }, " "},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- c.serve(ctx, listener, &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}, answer, slog.New(slog.DiscardHandler))
			}()
			client := http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					connection, err := new(net.Dialer).DialContext(ctx, "unix", socket)
					if err != nil {
						return nil, err
					}
					return connection, c.begin(connection)
				},
			}}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Forwarded-For", "vpc-00000000000000000")
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			if err = errors.Join(err, response.Body.Close()); err != nil || string(got) != c.want {
				t.Errorf("%q, want %q: %v", got, c.want, err)
			}
			client.CloseIdleConnections()
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
