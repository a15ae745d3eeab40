// SPDX-License-Identifier: Apache-2.0

package authenticator

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
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ServerConfig says what is served where.
type ServerConfig struct {
	// Address of the webhook: TLS, POST /authenticate, and /metrics, /healthz and /readyz for who may ask.
	Address string
	// Certificate and Key are files of the serving certificate, read again when they change, as is ClientCA, whose certificates
	// callers must have. Without it everybody may ask, so that the address has to be loopback.
	Certificate, Key, ClientCA string
	// Health is an address without TLS for /healthz and /readyz, and on loopback /metrics; nothing if "".
	Health   string
	Handler  http.Handler // of TokenReviews
	Gatherer prometheus.Gatherer
	Ready    func() error
	Logger   *slog.Logger
}

// Server serves TokenReviews, health and metrics.
type Server struct {
	config          ServerConfig
	webhook, health net.Listener
	servers         []*http.Server
	listeners       []net.Listener
}

// Listen opens the ports.
func Listen(ctx context.Context, c ServerConfig) (*Server, error) {
	if c.Handler == nil || c.Gatherer == nil || c.Ready == nil || c.Logger == nil {
		return nil, errors.New("a server of TokenReviews needs somebody to answer them, metrics, readiness and a logger")
	}
	if c.ClientCA == "" && !loopback(c.Address) {
		return nil, fmt.Errorf("the address %s is not loopback, so callers must have certificates: name their authority", c.Address)
	}
	files, err := newCertificates(c.Certificate, c.Key, c.ClientCA, c.Logger)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c}
	webhook := s.mux(true)
	webhook.Handle("/authenticate", c.Handler)
	if s.webhook, err = listen(ctx, "TokenReviews", c.Address); err != nil {
		return nil, err
	}
	s.serve(tls.NewListener(s.webhook, files.config()), webhook)
	if c.Health == "" {
		return s, nil
	}
	if s.health, err = listen(ctx, "health", c.Health); err != nil {
		_ = s.webhook.Close() // nobody was answered
		return nil, err
	}
	s.serve(s.health, s.mux(loopback(c.Health)))
	return s, nil
}

func (s *Server) mux(metrics bool) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.config.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	if metrics {
		mux.Handle("GET /metrics", promhttp.HandlerFor(s.config.Gatherer, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelWarn)}))
	}
	return mux
}

func (s *Server) serve(l net.Listener, h http.Handler) {
	s.listeners = append(s.listeners, l)
	s.servers = append(s.servers, &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 40 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10,
		// An API server asks all on one connection, and makes another for each question above this, just when there are too many.
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: 10_000},
		ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	})
}

// Address is where TokenReviews are answered.
func (s *Server) Address() net.Addr { return s.webhook.Addr() }

// HealthAddress is where health is served without TLS, nil if nowhere.
func (s *Server) HealthAddress() net.Addr {
	if s.health == nil {
		return nil
	}
	return s.health.Addr()
}

// Serve answers until ctx is done.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for n, server := range s.servers {
		group.Go(func() {
			if err := server.Serve(s.listeners[n]); !errors.Is(err, http.ErrServerClosed) {
				cancel(fmt.Errorf("serving TokenReviews: %w", err))
			}
		})
	}
	<-ctx.Done()
	quick, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer stop()
	for _, server := range s.servers {
		if server.Shutdown(quick) != nil {
			_ = server.Close() // who still waits after that asks again
		}
	}
	group.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return nil
}

func loopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func listen(ctx context.Context, what, address string) (net.Listener, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("the address %q for %s is not an IP address and a port, such as 127.0.0.1:21362", address, what)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening the port for %s: %w", what, err)
	}
	return l, nil
}
