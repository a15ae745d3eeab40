// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
)

// kept asks by HTTP/2 over one connection, as long as the server keeps it. A server that leaves says so by GOAWAY, and
// names the last request that it answers: then there is another connection for the next. A connection that ends without
// a GOAWAY was cut, and the next request fails.
type kept struct {
	config Config

	mu         sync.Mutex
	connection *connection
	ended      bool
}

// errCut is of a connection that ended, and nobody said why.
var errCut = errors.New("the connection was cut")

// connection is one of HTTP/2.
type connection struct {
	*http2.ClientConn
	frames *frames
}

// dial makes a connection, which repeats nothing.
func dial(ctx context.Context, c Config) (*connection, error) {
	config := c.TLS.Clone()
	config.NextProtos = []string{http2.NextProtoTLS}
	raw, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", c.URL.Host)
	if err != nil {
		return nil, err
	}
	frames := &frames{Conn: raw}
	client, err := new(http2.Transport).NewClientConn(frames) //nolint:staticcheck // net/http makes its connections itself: their frames are seen by nobody else
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return &connection{client, frames}, nil
}

// take returns the connection for the next request.
func (k *kept) take(ctx context.Context) (*connection, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.connection != nil && k.connection.CanTakeNewRequest() {
		return k.connection, nil
	}
	if k.ended {
		return nil, context.Canceled
	}
	before := k.connection
	next, err := dial(ctx, k.config)
	if err != nil {
		return nil, err
	}
	k.connection = next
	if before != nil && !before.frames.left.Load() {
		return nil, errCut
	}
	return next, nil
}

// RoundTrip implements http.RoundTripper.
func (k *kept) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		c, err := k.take(r.Context())
		if err != nil {
			return nil, err
		}
		answer, err := c.RoundTrip(r)
		if err != nil && c.frames.left.Load() && strings.Contains(err.Error(), "http2: client conn not usable") {
			continue // it was not sent
		}
		return answer, err
	}
}

// Close ends the connection.
func (k *kept) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.connection != nil {
		_ = k.connection.Close()
	}
}

// notProcessed reports whether an error says that a server which left has not looked at a request (RFC 9113, section 6.8):
// it is the same as a 429.
func notProcessed(err error) bool {
	return err != nil && strings.Contains(err.Error(), "graceful shutdown GOAWAY")
}

// frames is a connection that looks for the GOAWAY of a server without an error.
type frames struct {
	net.Conn
	left atomic.Bool

	header [9 + 8]byte // of the frame, with the beginning of its payload
	had    int         // bytes of it
	skip   int         // bytes of the payload that are still to come
}

// Read implements net.Conn.
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	f.see(p[:n])
	return n, err
}

func (f *frames) see(raw []byte) {
	const head, goAway = 9, 7
	for len(raw) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(raw))
			f.skip, raw = f.skip-n, raw[n:]
			continue
		}
		f.header[f.had] = raw[0]
		f.had, raw = f.had+1, raw[1:]
		if f.had < head {
			continue
		}
		length := int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
		whole := f.header[3] == goAway && length >= 8
		switch {
		case whole && f.had < len(f.header):
			continue
		case whole && [4]byte(f.header[13:]) == [4]byte{}:
			f.left.Store(true)
		}
		f.skip, f.had = length-(f.had-head), 0
	}
}
