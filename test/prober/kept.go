// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
	"golang.org/x/sync/singleflight"
)

// kept asks by HTTP/2 over one connection, as long as the server keeps it. A server that leaves says so by GOAWAY, and
// names the last request that it answers: then there is another connection for the next. A connection that has as many
// requests under way as its server allows is full: the next ones go over another one beside it, as those of net/http and
// client-go do, which ends when it has no requests any more. When one of them is told that its server leaves, the others
// lead to the same server: no more requests go over them. A connection that ends without a GOAWAY was cut, and the next
// request fails.
type kept struct {
	tls   *tls.Config
	door  Door
	dials singleflight.Group // at most one at a time, for all requests that wait

	mu          sync.Mutex
	connections []*connection
	leavings    int // of servers, so far
	ended       bool
}

// errCut is of a connection that ended, and nobody said why.
var errCut = errors.New("the connection was cut")

// connection is one of HTTP/2.
type connection struct {
	*http2.ClientConn
	frames   *frames
	leavings int // of servers, before it was dialled
}

// dial makes a connection, which repeats nothing. It knows how many requests its server allows.
func (k *kept) dial(ctx context.Context) (*connection, error) {
	raw, err := k.door.connect(ctx, k.tls, http2.NextProtoTLS)
	if err != nil {
		return nil, err
	}
	frames := &frames{Conn: raw}
	client, err := new(http2.Transport).NewClientConn(frames) //nolint:staticcheck // net/http makes its connections itself: their frames are seen by nobody else
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	_ = client.Ping(ctx) // the settings come before its answer; that the connection ended is seen by who takes it
	return &connection{ClientConn: client, frames: frames}, nil
}

// take returns a connection with a place for the next request, which is reserved.
func (k *kept) take(ctx context.Context) (*connection, error) {
	for {
		c, err := k.free()
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case done := <-k.dials.DoChan("", k.more):
			if done.Err != nil {
				return nil, done.Err
			}
		}
	}
}

// free returns the first connection that has a place, which is reserved; nil if they are full. It forgets those that
// ended, and ends those beside the first, and those of a server that leaves, that have no requests.
func (k *kept) free() (*connection, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil, context.Canceled
	}
	for _, c := range k.connections {
		if c.leavings == k.leavings && c.frames.left.Load() {
			k.leavings++
		}
	}
	var free *connection
	cut := false
	k.connections = slices.DeleteFunc(k.connections, func(c *connection) bool {
		switch is := c.State(); {
		case is.Closed || is.Closing:
			cut = cut || is.Closed && !c.frames.left.Load()
			return true
		case free == nil && c.leavings == k.leavings:
			if c.CanTakeNewRequest() {
				free = c
			}
		case is.StreamsActive+is.StreamsReserved+is.StreamsPending == 0:
			_ = c.Close()
			return true
		}
		return false
	})
	switch {
	case cut:
		return nil, errCut
	case free == nil || !free.ReserveNewRequest():
		return nil, nil
	}
	return free, nil
}

// more makes another connection.
func (k *kept) more() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k.mu.Lock()
	leavings := k.leavings
	k.mu.Unlock()
	c, err := k.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.leavings = leavings
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil, errors.Join(context.Canceled, c.Close())
	}
	k.connections = append(k.connections, c)
	return nil, nil
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

// Close ends the connections.
func (k *kept) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	for _, c := range k.connections {
		_ = c.Close()
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
