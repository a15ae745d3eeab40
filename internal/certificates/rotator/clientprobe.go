// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
)

// clientProbe shows the API server certificates that only it could have believed in: of the new authority, which it
// must accept, and in the end of the old one, which it must refuse.
type clientProbe struct {
	keys           *Keys
	server, caFile string
}

func (p *clientProbe) pending(ctx context.Context, r rotation.Rotation) string {
	accepted, err := p.accepts(ctx, r.New)
	switch {
	case err != nil:
		return "cannot ask the API server whom it trusts: " + err.Error()
	case !accepted:
		return "the API server does not accept client certificates of " + r.New + " yet"
	case r.Phase != rotation.Withdraw || r.Old == authority.Cluster: // the cluster's goes on to sign for components
		return ""
	}
	accepted, err = p.accepts(ctx, r.Old)
	switch {
	case err != nil:
		return "cannot ask the API server whom it trusts: " + err.Error()
	case accepted:
		return "the API server still accepts client certificates of " + r.Old
	}
	return ""
}

// accepts makes a connection of its own with a certificate of the authority. The API server answers 401 if it does not
// trust the authority.
func (p *clientProbe) accepts(ctx context.Context, name string) (bool, error) {
	certificate, err := p.keys.Probe(name, time.Now())
	if err != nil {
		return false, err
	}
	ca, err := os.ReadFile(p.caFile)
	if err != nil {
		return false, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &certificate, nil // shown whatever the server says it would like to see
		}},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server+"/version", http.NoBody)
	if err != nil {
		return false, err
	}
	answer, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK, http.StatusForbidden:
		return true, nil
	case http.StatusUnauthorized:
		return false, nil
	}
	return false, fmt.Errorf("it answers %s", answer.Status)
}
