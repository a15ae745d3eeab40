// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
)

var address = netip.MustParseAddr("127.93.14.201")

// credential issues a certificate as the service does, and returns its file and who trusts it.
func credential(t *testing.T, dir string) (string, *x509.CertPool) {
	t.Helper()
	store := authority.NewStore(dir)
	c := authority.Credential{Name: "issuer", Authority: authority.Cluster, CommonName: "muster:issuer", Addresses: []netip.Addr{address}}
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

// unused is a port of the address that nobody listens on.
func unused(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// running serves until the test ends, and returns a channel with what Serve returned.
func running(t *testing.T, port int, credential string) (end context.CancelFunc, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, ServerConfig{Address: address, Port: port, Credential: credential, Lookup: one, Log: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(cancel)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if c, err := net.Dial("tcp", netip.AddrPortFrom(address, uint16(port)).String()); err == nil {
			_ = c.Close()
			return cancel, done
		}
		select {
		case err := <-done:
			t.Fatal("it does not serve:", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("it does not answer")
	return nil, nil
}

func get(t *testing.T, pool *x509.CertPool, url string, adjust func(*tls.Config)) (answered, string, error) {
	t.Helper()
	config := &tls.Config{RootCAs: pool}
	if adjust != nil {
		adjust(config)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return answered{}, "", err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	return answered{response.StatusCode, response.ProtoMajor, response.TLS}, string(body), err
}

// answered is what an answer says beside its body.
type answered struct {
	StatusCode, ProtoMajor int
	TLS                    *tls.ConnectionState
}

func TestServe(t *testing.T) {
	file, pool := credential(t, filepath.Join(t.TempDir(), "pki"))
	port := unused(t)
	end, ended := running(t, port, file)
	url := fmt.Sprintf("https://127.93.14.201:%d/id/%s/keys", port, someID)
	response, body, err := get(t, pool, url, nil)
	if err != nil || body != `{"keys":[]}` || response.ProtoMajor != 2 {
		t.Errorf("%v %s, %v", response, body, err)
	}
	if _, _, err := get(t, x509.NewCertPool(), url, nil); err == nil {
		t.Error("its certificate is trusted without the authority")
	}
	if _, _, err := get(t, pool, url, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS11, tls.VersionTLS11 }); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if _, _, err := get(t, pool, url, func(c *tls.Config) { c.ServerName = "127.0.0.1" }); err == nil {
		t.Error("its certificate is good for 127.0.0.1")
	}
	if response, _, err := get(t, pool, url+"?"+strings.Repeat("x", 64<<10), func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }); err == nil && response.StatusCode == http.StatusOK {
		t.Error("a request of 64 KiB is answered")
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, _, err := get(t, pool, url, nil); err == nil {
		t.Error("it answers after its end")
	}
	running(t, port, file) // the port is free again at once
}

// A renewed certificate is served to the next connection.
func TestServeReloads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	file, pool := credential(t, dir)
	port := unused(t)
	running(t, port, file)
	url := fmt.Sprintf("https://127.93.14.201:%d/id/%s/keys", port, someID)
	before, _, err := get(t, pool, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if response, _, err := get(t, pool, url, nil); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("without its file: %v", err)
	}
	credential(t, dir)
	raw, err := os.ReadFile(file)
	block, _ := pem.Decode(raw)
	if err != nil || block == nil {
		t.Fatal(err)
	}
	after, _, err := get(t, pool, url, nil)
	if err != nil || after.TLS.PeerCertificates[0].Equal(before.TLS.PeerCertificates[0]) || string(after.TLS.PeerCertificates[0].Raw) != string(block.Bytes) {
		t.Errorf("the renewed certificate is not served: %v", err)
	}
}

func TestServeSaysWhatIsWrong(t *testing.T) {
	file, _ := credential(t, filepath.Join(t.TempDir(), "pki"))
	taken, err := net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := taken.Addr().(*net.TCPAddr).Port
	good := ServerConfig{Address: address, Port: port, Credential: file, Lookup: one, Log: slog.New(slog.DiscardHandler)}
	for want, change := range map[string]func(*ServerConfig){
		fmt.Sprintf("%s is in use by %s (process %d), so", taken.Addr(), filepath.Base(os.Args[0]), os.Getpid()): func(*ServerConfig) {},
		"needs an address":                   func(c *ServerConfig) { c.Address = netip.Addr{} },
		"a lookup":                           func(c *ServerConfig) { c.Lookup = nil },
		"a credential":                       func(c *ServerConfig) { c.Credential = "" },
		"reading the certificate of issuers": func(c *ServerConfig) { c.Credential += ".none" },
		"opening the port for the documents": func(c *ServerConfig) { c.Address = netip.MustParseAddr("192.0.2.1") },
	} {
		c := good
		change(&c)
		if err := Serve(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if !Permitted(address, port) {
		t.Error("a port that another program has is not permitted")
	}
}
