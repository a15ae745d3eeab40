// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/iam/caller"
)

// Credential is the files by which one end proves its name to the other.
type Credential struct {
	// CA has the account's authority, which signs for both ends.
	CA string
	// File has this end's certificate and key. It is read again for each connection, so a renewal needs no restart.
	File string
}

// read reads the authority, and finds out whether there is a certificate.
func (c Credential) read() (*x509.CertPool, error) {
	if !filepath.IsAbs(c.CA) || !filepath.IsAbs(c.File) {
		return nil, fmt.Errorf("the account's authority, %q, and the credential for it, %q, must be absolute paths", c.CA, c.File)
	}
	raw, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the account's authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("reading the account's authority: %s holds no certificate in PEM", c.CA)
	}
	_, err = c.load()
	return pool, err
}

func (c Credential) load() (*tls.Certificate, error) {
	certificate, err := tls.LoadX509KeyPair(c.File, c.File)
	if err != nil {
		return nil, fmt.Errorf("reading the credential for the account: %w", err)
	}
	return &certificate, nil
}

// client is how a caller connects.
func (c Credential) client() (*tls.Config, error) {
	pool, err := c.read()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: caller.ServerName, RootCAs: pool, NextProtos: []string{"http/1.1"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.load() },
	}, nil
}

// server is how the account lets callers connect.
func (c Credential) server() (*tls.Config, error) {
	pool, err := c.read()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, NextProtos: []string{"http/1.1"},
		SessionTicketsDisabled: true, // each connection proves whose it is
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.load() },
	}, nil
}

// callerOf is who is at the other end of a verified connection.
func callerOf(state *tls.ConnectionState) (caller.Caller, *x509.Certificate, error) {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return caller.Caller{}, nil, errors.New("there is no verified client certificate")
	}
	who, err := caller.Of(state.PeerCertificates[0])
	return who, state.PeerCertificates[0], err
}
