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
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/platform/httpserve"
)

// ServerConfig says what is served where.
type ServerConfig struct {
	// Address of the webhook: TLS, POST /authenticate, and /metrics, /healthz and /readyz for permitted clients.
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
	ports           httpserve.Set
	webhook, health net.Listener
}

// Listen opens the ports.
func Listen(ctx context.Context, c ServerConfig) (*Server, error) {
	if c.Handler == nil || c.Gatherer == nil || c.Ready == nil || c.Logger == nil {
		return nil, errors.New("a server of TokenReviews needs somebody to answer them, metrics, readiness and a logger")
	}
	if c.ClientCA == "" && !httpserve.Loopback(c.Address) {
		return nil, fmt.Errorf("the address %s is not loopback, so callers must have certificates: name their authority", c.Address)
	}
	files, err := httpserve.ReadFiles("TokenReviews", c.Certificate, c.Key, c.ClientCA, c.Logger)
	if err != nil {
		return nil, fmt.Errorf("%w (muster authenticator init makes what is needed)", err)
	}
	s := &Server{config: c, ports: httpserve.Set{Logger: c.Logger, Grace: 2 * time.Second}}
	if err := s.open(ctx, files); err != nil {
		s.ports.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) open(ctx context.Context, files *httpserve.Files) (err error) {
	if s.webhook, err = s.ports.Open(ctx, "TokenReviews", s.config.Address); err != nil {
		return err
	}
	webhook := s.mux(true)
	webhook.Handle("/authenticate", s.config.Handler)
	// An API server asks all on one connection, and makes another for each question above this, just when there are too many.
	s.ports.Handle(tls.NewListener(s.webhook, files.Config()), webhook).HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 10_000}
	if s.config.Health == "" {
		return nil
	}
	if s.health, err = s.ports.Open(ctx, "health", s.config.Health); err != nil {
		return err
	}
	s.ports.Handle(s.health, s.mux(httpserve.Loopback(s.config.Health)))
	return nil
}

func (s *Server) mux(metrics bool) *http.ServeMux {
	mux := http.NewServeMux()
	httpserve.Health(mux, s.config.Ready)
	if metrics {
		mux.Handle("GET /metrics", httpserve.Metrics(s.config.Gatherer, s.config.Logger))
	}
	return mux
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
func (s *Server) Serve(ctx context.Context) error { return s.ports.Serve(ctx) }
