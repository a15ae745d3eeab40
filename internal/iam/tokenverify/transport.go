// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"muster.dev/muster/internal/iam/ststoken"
)

// Bounds of every way to STS.
const (
	dialTime      = 3 * time.Second
	handshakeTime = 5 * time.Second
	idleTime      = 90 * time.Second
	maxHeader     = 32 << 10 // bytes
)

// way is how a question gets to a host and the answer back: GET / with that query, and nothing else that the caller
// chose. It goes where it is sent and nowhere else, whatever the answer says. It may be used by many at once.
type way interface {
	ask(ctx context.Context, to *url.URL, host, query string) (response, error)
	close() // ends connections that nobody uses
}

// response is what came back.
type response struct {
	status int
	body   []byte // at most maxAnswer
}

// newWay is a direct one unless there is a proxy, or HTTP/2.
func newWay(c RemoteConfig) way {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: c.RootCAs, ClientSessionCache: tls.NewLRUClientSessionCache(256),
		DynamicRecordSizingDisabled: true, // a question is one record, and sent at once
	}
	if c.Proxy == nil && !c.HTTP2 {
		return newDirect(config, c.Connections, headers(c.ClusterID))
	}
	return &transport{header: headers(c.ClusterID), http: newTransport(c, config)}
}

// headers are sent beside Host. That of the cluster is signed.
func headers(clusterID string) http.Header {
	return http.Header{ststoken.ClusterHeader: {clusterID}, "Accept": {"application/json"}, "User-Agent": {"muster-authenticator"}}
}

// readBody reads what a response has behind its header.
func readBody(r *http.Response) (response, error) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer+1))
	if err != nil {
		return response{status: r.StatusCode}, fmt.Errorf("reading the body of the answer: %w", err)
	}
	if len(raw) > maxAnswer {
		return response{status: r.StatusCode}, fmt.Errorf("%w: it has more than %d bytes", errNotSTS, maxAnswer)
	}
	return response{status: r.StatusCode, body: raw}, nil
}

// transport is Go's, which speaks HTTP/2 and with proxies.
type transport struct {
	header http.Header
	http   *http.Transport // a client would follow redirects
}

// newTransport is one of our own: Go's default keeps two idle connections for each host, so that every third caller
// pays for a handshake, and takes a proxy from the environment.
func newTransport(c RemoteConfig, config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    handshakeTime,
		ResponseHeaderTimeout:  c.Timeout,
		MaxIdleConns:           4 * c.Connections,
		MaxIdleConnsPerHost:    c.Connections,
		MaxConnsPerHost:        c.Connections,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // answers are small, and a small body could become a large one
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(c.HTTP2)
	t.Protocols = protocols
	if c.Proxy != nil {
		t.Proxy = http.ProxyURL(c.Proxy)
	}
	return t
}

func (t *transport) ask(ctx context.Context, to *url.URL, host, query string) (response, error) {
	request := &http.Request{
		Method: http.MethodGet, Host: host, URL: &url.URL{Scheme: to.Scheme, Host: to.Host, Path: "/", RawQuery: query},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: t.header.Clone(),
	}
	r, err := t.http.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return response{}, err
	}
	defer func() { _ = r.Body.Close() }() // it was only read
	return readBody(r)
}

func (t *transport) close() { t.http.CloseIdleConnections() }
