// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Listen opens the port for health and metrics. They are served without TLS or authentication, so on loopback only.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("the address %q for metrics is not an IP address and a port, such as 127.0.0.1:9443", address)
	}
	if !at.Addr().Unmap().IsLoopback() {
		return nil, fmt.Errorf("metrics would be open to everybody on %s; use a loopback address such as 127.0.0.1:%d", at.Addr(), at.Port())
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening the port for metrics: %w", err)
	}
	return l, nil
}

// Serve answers /healthz, /readyz and /metrics until ctx is done.
func Serve(ctx context.Context, l net.Listener, metrics prometheus.Gatherer, ready func() error) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() {
		quick, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(quick) // whoever still reads after that is cut off
	})
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}
