// SPDX-License-Identifier: Apache-2.0

package sts

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// newTransport is one of our own: Go's default keeps two idle connections for each host, so that every third caller pays for a
// handshake, and takes a proxy from the environment.
func newTransport(c RemoteConfig) *http.Transport {
	dialer := &net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.RootCAs, ClientSessionCache: tls.NewLRUClientSessionCache(256)},
		TLSHandshakeTimeout:    5 * time.Second,
		ResponseHeaderTimeout:  c.Timeout,
		MaxIdleConns:           4 * c.Connections,
		MaxIdleConnsPerHost:    c.Connections,
		MaxConnsPerHost:        c.Connections,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 32 << 10,
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
