// SPDX-License-Identifier: Apache-2.0

// Package mutualclient asks servers by TLS, with a client certificate that says who asks. The files of the certificate
// and of the authority that servers are known by may be replaced at any time: each connection begins with what they say
// then. No proxy is asked, and no redirection is followed.
//
// It trusts the authority in the file. A server whose certificate is for another address, by another authority or of
// another common name is asked nothing: components of a plane have certificates of one authority and addresses of one
// host, and one that takes the port of another must not answer for it.
package mutualclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 16 << 10

// New makes a client of a server with a common name, by an authority in a file. The client's own certificate and key
// are one file. It waits for an answer, its body included, as long as timeout says.
func New(authority, credential, server string, timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				config, err := read(authority, credential, server)
				if err != nil {
					return nil, err
				}
				return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
			},
			MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func read(authority, credential, server string) (*tls.Config, error) {
	raw, err := os.ReadFile(authority)
	if err != nil {
		return nil, fmt.Errorf("reading the authority of a server: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("reading the authority of a server: %s holds no certificate in PEM", authority)
	}
	pair, err := tls.LoadX509KeyPair(credential, credential)
	if err != nil {
		return nil, fmt.Errorf("reading a client certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}, VerifyConnection: func(state tls.ConnectionState) error {
		if got := state.PeerCertificates[0].Subject.CommonName; got != server {
			return fmt.Errorf("the certificate of the server is of %.100q, and %q is asked", got, server)
		}
		return nil
	}}, nil
}
