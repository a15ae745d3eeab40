// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/platform/httpserve"
)

// servingCertificate is what /metrics is served with: from files, or made for this process.
func servingCertificate(c ServerConfig) (*tls.Config, error) {
	switch {
	case (c.CertFile == "") != (c.KeyFile == ""):
		return nil, errors.New("the certificate of metrics needs both a certificate and a key file, or neither")
	case c.CertFile != "":
		files, err := httpserve.ReadFiles("metrics", c.CertFile, c.KeyFile, c.ClientCA, c.Logger)
		if err != nil {
			return nil, err
		}
		return files.ConfigIfGiven(), nil
	case c.ClientCA != "":
		return nil, errors.New("client certificates of readers of metrics need a serving certificate and its key in files: give metrics both")
	}
	made, err := selfMade(c.Metrics, c.Now())
	if err != nil {
		return nil, fmt.Errorf("making a certificate for metrics: %w", err)
	}
	return httpserve.Fixed(made), nil
}

// selfMade is good for ten years, which is longer than any process lives.
func selfMade(address string, now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := pki.NewSerial(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
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
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
