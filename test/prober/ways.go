// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
)

// way is how requests come to a door.
type way struct {
	http.RoundTripper
	door Door
	name string
}

func newWay(c Config, door Door, name string) *way {
	if name == newConnection {
		return &way{fresh{c.TLS, door}, door, name}
	}
	return &way{&kept{tls: c.TLS, door: door}, door, name}
}

// Close ends what is kept.
func (w *way) Close() {
	if k, ok := w.RoundTripper.(*kept); ok {
		k.Close()
	}
}

// connect makes a connection to a door, for a protocol.
func (d Door) connect(ctx context.Context, secured *tls.Config, protocol string) (net.Conn, error) {
	dial := d.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	raw, err := dial(ctx, "tcp", d.Address)
	if err != nil {
		return nil, err
	}
	config := secured.Clone()
	config.NextProtos = []string{protocol}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(d.Address)
	}
	connection := tls.Client(raw, config)
	if err := connection.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return connection, nil
}

// fresh asks by HTTP/1.1 over a connection of its own for each request.
type fresh struct {
	tls  *tls.Config
	door Door
}

// RoundTrip implements http.RoundTripper.
func (f fresh) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := f.door.connect(r.Context(), f.tls, "http/1.1")
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(r.Context(), func() { _ = raw.Close() })
	end := func() error {
		stop()
		return raw.Close()
	}
	r.Header.Set("Connection", "close")
	if err := r.Write(raw); err != nil {
		_ = end()
		return nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(raw), r)
	if err != nil {
		_ = end()
		return nil, err
	}
	answer.Body = &body{answer.Body, end}
	return answer, nil
}

// body is that of an answer whose connection ends with it.
type body struct {
	io.Reader
	end func() error
}

// Close implements io.Closer.
func (b *body) Close() error { return b.end() }
