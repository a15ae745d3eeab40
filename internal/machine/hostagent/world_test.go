// SPDX-License-Identifier: Apache-2.0

package hostagent_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/machine/hostagent"
)

// The common names of both sides.
const clientName, serverName = "account", "host"

// world is a server of a host on loopback, with an authority of its own.
type world struct {
	dir       string
	ca        *x509.Certificate
	key       *ecdsa.PrivateKey
	authority string // file
	url       string
}

func newWorld(t *testing.T, host hostagent.Host) *world {
	t.Helper()
	w := newAuthority(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // the server ends after the test's own context
	s, err := hostagent.NewServer(ctx, hostagent.ServerConfig{
		Host: host, Address: "127.0.0.1:0", Credential: w.credential(t, pkix.Name{CommonName: serverName}), ClientCA: w.authority,
		Client: clientName, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	w.url = "https://" + s.Address().String()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func newAuthority(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	w.ca, w.key = pkitest.Authority(t, "hosts", time.Now(), time.Hour)
	w.authority = filepath.Join(w.dir, "ca.pem")
	put(t, w.authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.ca.Raw}))
	return w
}

// credential is a file with a certificate of the authority and its key, for a server and for a client.
func (w *world) credential(t *testing.T, subject pkix.Name) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, w.ca, key.Public(), w.key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.dir, serial.String()+".pem")
	put(t, path, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...))
	return path
}

func (w *world) client(t *testing.T, name string) *hostagent.Client {
	t.Helper()
	c := hostagent.NewClient(hostagent.ClientConfig{
		URL: w.url, Authority: w.authority, Server: serverName, Credential: w.credential(t, pkix.Name{CommonName: name}),
	})
	t.Cleanup(c.Close)
	return c
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
