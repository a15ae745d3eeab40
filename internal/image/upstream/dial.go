// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// RefusedError is a place that must not be asked, and why.
type RefusedError struct {
	Place, Reason string
}

func (e *RefusedError) Error() string { return e.Place + " must not be reached: " + e.Reason }

// Way is how registries are reached.
type Way struct {
	// Refuse decides about an address that is about to be dialled.
	Refuse func(netip.Addr) error
	// Proxy is the host's proxy for a URL; nil means that there is none. It may be nil.
	Proxy func(*url.URL) (*url.URL, error)
	// NoProxy says why connections must not be made by a proxy, which finds addresses by itself; empty if they may.
	NoProxy string
	// Roots are trusted authorities besides the host's, as PEM; may be empty.
	Roots []byte
}

const (
	dialTime      = 10 * time.Second
	answerTime    = 30 * time.Second
	maxPerHost    = 16
	maxHeader     = 64 << 10
	maxRedirects  = 5
	idleTime      = time.Minute
	keepAliveTime = 30 * time.Second
)

// transport makes connections by the proxy or directly, and never to a place that is refused.
type transport struct {
	way             Way
	direct, proxied *http.Transport
}

func newTransport(way Way) (*transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(way.Roots) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("reading the host's authorities: %w", err)
		}
		if !roots.AppendCertsFromPEM(way.Roots) {
			return nil, errors.New("the certificateAuthority holds no certificate: it must be a file of PEM blocks")
		}
		config.RootCAs = roots
	}
	fresh := func() *http.Transport {
		return &http.Transport{
			TLSClientConfig: config.Clone(), TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: answerTime, IdleConnTimeout: idleTime,
			MaxConnsPerHost: maxPerHost, MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true, DisableCompression: true,
		}
	}
	t := &transport{way: way, direct: fresh(), proxied: fresh()}
	t.direct.DialContext = t.dial
	dialer := net.Dialer{Timeout: dialTime, KeepAlive: keepAliveTime}
	t.proxied.DialContext = dialer.DialContext // to the proxy alone: each request by this transport has one
	t.proxied.Proxy = func(r *http.Request) (*url.URL, error) { return way.Proxy(r.URL) }
	return t, nil
}

// RoundTrip sends a request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, &RefusedError{r.URL.Host, "only https is spoken with registries"}
	}
	if t.way.Proxy == nil {
		return t.direct.RoundTrip(r)
	}
	proxy, err := t.way.Proxy(r.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("finding the host's proxy: %w", err)
	case proxy == nil:
		return t.direct.RoundTrip(r)
	case t.way.NoProxy != "":
		return nil, &RefusedError{r.URL.Host, t.way.NoProxy}
	}
	if why := privateName(r.URL.Hostname()); why != "" {
		return nil, &RefusedError{r.URL.Host, why}
	}
	return t.proxied.RoundTrip(r)
}

// dial finds the addresses of a name and connects to the first one that may be reached and answers.
func (t *transport) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", name)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{KeepAlive: keepAliveTime}
	var failed error
	for _, to := range found {
		if err = t.way.Refuse(to.Unmap()); err != nil {
			err = &RefusedError{name + " (" + to.Unmap().String() + ")", err.Error()}
		} else {
			var connection net.Conn
			if connection, err = dialer.DialContext(ctx, "tcp4", net.JoinHostPort(to.Unmap().String(), port)); err == nil {
				return connection, nil
			}
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func (t *transport) close() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}

// inside are the ends of names that are not of the public name space (RFC 6761, RFC 6762, RFC 8375; ICANN's
// "internal").
var inside = []string{"localhost", "local", "internal", "invalid", "onion", "home.arpa", "lan", "intranet", "corp", "home", "test", "in-addr.arpa", "ip6.arpa"}

// privateName says why a name must not be given to a proxy, which finds its address by itself.
func privateName(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if _, err := netip.ParseAddr(name); err == nil || strings.Contains(name, ":") {
		return "it is an address, which the host's proxy would connect to unasked"
	}
	last := name[strings.LastIndex(name, ".")+1:]
	if !strings.Contains(name, ".") || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "it is not a public name"
	}
	if slices.ContainsFunc(inside, func(end string) bool { return strings.HasSuffix(name, "."+end) }) {
		return "it is not a public name"
	}
	return ""
}
