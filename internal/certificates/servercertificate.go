// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"muster.dev/muster/internal/pki"
)

// servingCertificate is what /metrics is served with: from files, or made for this process.
type servingCertificate struct {
	certFile, keyFile string
	logger            *slog.Logger

	mu      sync.Mutex
	seen    [2]time.Time
	current *tls.Certificate
}

func newServingCertificate(c ServerConfig) (*servingCertificate, error) {
	s := &servingCertificate{certFile: c.CertFile, keyFile: c.KeyFile, logger: c.Logger}
	var err error
	switch {
	case (c.CertFile == "") != (c.KeyFile == ""):
		return nil, errors.New("the certificate of metrics needs both a certificate and a key file, or neither")
	case c.CertFile == "":
		s.current, err = selfMade(c.Metrics, c.Now())
	default:
		s.seen = s.look()
		s.current, err = s.load()
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the certificate of metrics: %w", err)
	}
	return s, nil
}

// get returns the certificate for one connection. Files that were replaced are read again; while they do not fit, the old goes on.
func (s *servingCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.certFile == "" {
		return s.current, nil
	}
	if seen := s.look(); seen != s.seen {
		s.seen = seen
		if next, err := s.load(); err == nil {
			s.current = next
		} else {
			s.logger.Warn("certificate of metrics not reloaded, the old one goes on", "certificate", s.certFile, "error", err)
		}
	}
	return s.current, nil
}

func (s *servingCertificate) look() (seen [2]time.Time) {
	for n, name := range []string{s.certFile, s.keyFile} {
		if info, err := os.Stat(name); err == nil {
			seen[n] = info.ModTime()
		}
	}
	return seen
}

func (s *servingCertificate) load() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
	return &c, err
}

// selfMade is good for ten years, which is longer than any process lives.
func selfMade(address string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := pki.NewSerial(rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "muster-certificate-controller"}, DNSNames: []string{"localhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		t.DNSNames = append(t.DNSNames, host)
	}
	if at, err := netip.ParseAddrPort(address); err == nil && !at.Addr().IsUnspecified() {
		t.IPAddresses = []net.IP{at.Addr().AsSlice()}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
