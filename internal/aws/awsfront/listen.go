// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"muster.dev/muster/internal/platform/proxyheader"
)

// maxPerMachine is how many connections one machine may have at once, its pods included.
const maxPerMachine = 32

// Certificate finds the certificate of the listener for each connection.
type Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Serve answers people over TLS until the context ends. A client that is slow to ask or to read is cut off, and one
// that has proven nothing yet makes way for the next when there are too many.
func (f *Front) Serve(ctx context.Context, listener net.Listener, certificate Certificate) error {
	return f.serve(ctx, newPlaces(listener, f.config.Connections, f.config.Connections), certificate)
}

// ServeMachines does the same for machines, which have places of their own: nobody on the host takes theirs, and no
// machine those of others. The listener must be reached by the relays of VPCs alone, which say with a PROXY header
// whose connection each is.
func (f *Front) ServeMachines(ctx context.Context, listener net.Listener, certificate Certificate) error {
	return f.serve(ctx, newPlaces(proxyheader.NewListener(listener, f.config.Log), f.config.Connections, maxPerMachine), certificate)
}

func (f *Front) serve(ctx context.Context, places *places, certificate Certificate) error {
	server := &http.Server{
		Handler: f, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 32 << 10,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, placeKey{}, placeOf(c))
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if p := placeOf(c); p != nil && state == http.StateIdle {
				p.rest()
			}
		},
		ErrorLog: slog.NewLogLogger(f.config.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	// HTTP/1.1 alone: its limits are those above, and nobody here sends many requests at once.
	err := server.Serve(tls.NewListener(places, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificate}))
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering requests of AWS's tools: %w", err)
	}
	return nil
}

type placeKey struct{}

// Proven protects the connection of a request whose sender is known, until the request is answered. Gates call it.
func Proven(ctx context.Context) {
	if p, ok := ctx.Value(placeKey{}).(*place); ok && p != nil {
		p.work()
	}
}

// vpcOf is the VPC that a request comes from; empty for one of the host.
func vpcOf(ctx context.Context) string {
	if p, ok := ctx.Value(placeKey{}).(*place); ok && p != nil {
		return p.peer.vpc
	}
	return ""
}

func placeOf(c net.Conn) *place {
	over, ok := c.(*tls.Conn)
	if !ok {
		return nil
	}
	p, _ := over.NetConn().(*place)
	return p
}
