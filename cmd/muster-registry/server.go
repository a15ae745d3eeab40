// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/image/registry"
	"muster.dev/muster/internal/image/registrystore"
	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/statedir"
)

// server answers people and machines.
type server struct {
	dir              statedir.Dir
	people, machines http.Handler
	tls              *tls.Config
	store            *registrystore.Store
	metrics          *prometheus.Registry
	log              *slog.Logger
}

// run answers people, machines and the service's questions about readiness until the context or one of the three ends.
func (s *server) run(ctx context.Context, listen netip.AddrPort) error {
	people, err := new(net.ListenConfig).Listen(ctx, "tcp", listen.String())
	if err != nil {
		return fmt.Errorf("listening for the image registry: %w", err)
	}
	machines, err := socketdir.ListenPrivate(ctx, s.dir.RegistryMachinesSocket())
	if err != nil {
		return err
	}
	ready, err := socketdir.ListenPrivate(ctx, s.dir.RegistrySocket())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	for _, part := range []func() error{
		func() error { return registry.Serve(ctx, people, s.tls, s.people, s.log) },
		func() error { return registry.ServeRelayed(ctx, machines, s.tls, s.machines, s.log) },
		func() error { return s.serveHealth(ctx, ready) },
		func() error { registry.Collect(ctx, s.store, s.log); return nil },
	} {
		group.Go(func() {
			if err := part(); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	s.log.Info("the image registry serves", "address", people.Addr().String())
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// serveHealth answers /readyz, /healthz and /metrics.
func (s *server) serveHealth(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	httpserve.Health(mux, func() error { return nil }) // it serves or has ended; whether the account answers is another's readiness
	mux.Handle("GET /metrics", httpserve.Metrics(s.metrics, s.log))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 4 << 10}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the health of the image registry: %w", err)
	}
	return nil
}
