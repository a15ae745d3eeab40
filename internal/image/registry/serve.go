// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"muster.dev/muster/internal/image/registrystore"
	"muster.dev/muster/internal/platform/proxyheader"
)

const (
	// maxConnections of people.
	maxConnections = 1024
	// collectInterval is how often what nothing refers to is removed.
	collectInterval = time.Hour
)

// Serve answers on a listener by TLS until the context ends.
func Serve(ctx context.Context, listener net.Listener, config *tls.Config, handler http.Handler, log *slog.Logger) error {
	return serve(ctx, netutil.LimitListener(listener, maxConnections), config, handler, log)
}

// ServeRelayed is Serve for connections that the relays of VPCs pass on, each after a PROXY header that names its
// machine and VPC.
func ServeRelayed(ctx context.Context, listener net.Listener, config *tls.Config, handler http.Handler, log *slog.Logger) error {
	return serve(ctx, newShared(proxyheader.NewListener(listener, log), log), config, handler, log) // which bounds those that have named nobody yet
}

func serve(ctx context.Context, listener net.Listener, config *tls.Config, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withVPC,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(tls.NewListener(listener, config))
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the image registry: %w", err)
	}
	return nil
}

// vpcKey is of the VPC in the context of a connection.
type vpcKey struct{}

// withVPC notes the VPC that a relay named.
func withVPC(ctx context.Context, connection net.Conn) context.Context {
	if secured, ok := connection.(*tls.Conn); ok {
		connection = secured.NetConn()
	}
	if relayed, ok := connection.(*placed); ok {
		return context.WithValue(ctx, vpcKey{}, relayed.Header.VPC)
	}
	return ctx
}

// VPC is the VPC that a relayed request comes from; empty for others.
func VPC(r *http.Request) string {
	vpc, _ := r.Context().Value(vpcKey{}).(string)
	return vpc
}

// Collect removes what nothing refers to, now and then, until the context ends.
func Collect(ctx context.Context, store *registrystore.Store, log *slog.Logger) {
	for {
		blobs, bytes, err := store.Collect(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			log.Error("cannot remove what no image has", "error", err)
		case blobs > 0:
			log.Info("removed what no image has", "blobs", blobs, "bytes", bytes)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(collectInterval):
		}
	}
}
