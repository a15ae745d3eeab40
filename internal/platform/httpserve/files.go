// SPDX-License-Identifier: Apache-2.0

package httpserve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Files are what a port is served with by TLS. Files that were replaced are read again. While they do not fit, or cannot
// be read, the old ones go on, and each connection tries again.
type Files struct {
	what                       string
	certificate, key, clientCA string
	logger                     *slog.Logger

	mu      sync.Mutex
	seen    [3]time.Time
	problem string // why what was seen is not current
	current *tls.Config
}

// ReadFiles reads a certificate and its key, of what is served. Callers must have a certificate of clientCA's unless
// that is "".
func ReadFiles(what, certificate, key, clientCA string, logger *slog.Logger) (*Files, error) {
	f := &Files{what: what, certificate: certificate, key: key, clientCA: clientCA, logger: logger}
	f.seen = f.look()
	var err error
	if f.current, err = f.load(); err != nil {
		return nil, fmt.Errorf("reading the certificate of %s: %w", what, err)
	}
	return f, nil
}

// Config asks for the newest files with each connection.
func (f *Files) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols(), GetConfigForClient: f.get}
}

// ConfigIfGiven is Config for callers that may show a client certificate or none. A certificate that a caller shows
// must be signed by clientCA.
func (f *Files) ConfigIfGiven() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols(), GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		config, err := f.get(hello)
		if err != nil || config.ClientAuth == tls.NoClientCert {
			return config, err
		}
		config = config.Clone()
		config.ClientAuth = tls.VerifyClientCertIfGiven
		return config, nil
	}}
}

// protocols that net/http speaks on a listener that it did not open.
func protocols() []string { return []string{"h2", "http/1.1"} }

// Fixed serves with a certificate that stays.
func Fixed(certificate tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols(), Certificates: []tls.Certificate{certificate}}
}

// Certificate is the newest certificate, in the form of [tls.Config.GetCertificate].
func (f *Files) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	config, err := f.get(hello)
	if err != nil {
		return nil, err
	}
	return &config.Certificates[0], nil
}

func (f *Files) get(*tls.ClientHelloInfo) (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.look()
	if seen == f.seen && f.problem == "" {
		return f.current, nil
	}
	next, err := f.load()
	switch {
	case err == nil:
		f.current, f.problem = next, ""
	case seen != f.seen || err.Error() != f.problem:
		f.problem = err.Error()
		f.logger.Warn("certificate not reloaded, the old one goes on", "of", f.what, "certificate", f.certificate, "error", err)
	}
	f.seen = seen
	return f.current, nil
}

func (f *Files) look() (seen [3]time.Time) {
	for n, name := range []string{f.certificate, f.key, f.clientCA} {
		if info, err := os.Stat(name); err == nil {
			seen[n] = info.ModTime()
		}
	}
	return seen
}

func (f *Files) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return nil, err
	}
	config := Fixed(pair)
	if f.clientCA == "" {
		return config, nil
	}
	raw, err := os.ReadFile(f.clientCA)
	if err != nil {
		return nil, err
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", f.clientCA)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}
