// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificates are the files that TLS is served by. Files that were replaced are read again; while they do not fit, the old ones
// go on.
type certificates struct {
	certificate, key, clientCA string
	logger                     *slog.Logger

	mu      sync.Mutex
	seen    [3]time.Time
	current *tls.Config
}

func newCertificates(certificate, key, clientCA string, logger *slog.Logger) (*certificates, error) {
	c := &certificates{certificate: certificate, key: key, clientCA: clientCA, logger: logger}
	c.seen = c.look()
	var err error
	if c.current, err = c.load(); err != nil {
		return nil, fmt.Errorf("reading the certificates of the webhook (muster authenticator init makes them): %w", err)
	}
	return c, nil
}

// config asks for the newest files with each connection.
func (c *certificates) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetConfigForClient: c.get}
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seen := c.look(); seen != c.seen {
		c.seen = seen
		if next, err := c.load(); err == nil {
			c.current = next
		} else {
			c.logger.Warn("certificates of the webhook not reloaded, the old ones go on", "certificate", c.certificate, "error", err)
		}
	}
	return c.current, nil
}

func (c *certificates) look() (seen [3]time.Time) {
	for n, name := range []string{c.certificate, c.key, c.clientCA} {
		if info, err := os.Stat(name); err == nil {
			seen[n] = info.ModTime()
		}
	}
	return seen
}

func (c *certificates) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.certificate, c.key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair}}
	if c.clientCA == "" {
		return config, nil
	}
	raw, err := os.ReadFile(c.clientCA)
	if err != nil {
		return nil, err
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", c.clientCA)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}
