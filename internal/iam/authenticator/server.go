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
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/metricsgate"
)

// ServerConfig says what is served where.
type ServerConfig struct {
	// Address of the webhook: TLS, POST /authenticate, /healthz and /readyz; and /metrics if callers must have
	// certificates.
	Address string
	// Certificate and Key are files of the serving certificate, read again when they change, as is ClientCA, whose
	// certificates callers must have. Without it everybody may ask, so that the address has to be loopback.
	Certificate, Key, ClientCA string
	// Health is an address without TLS for /healthz and /readyz, which tell nothing worth hiding; nothing if "".
	Health string
	// Metrics is an address of /metrics; nothing if "". It is TLS, with the webhook's certificate, on loopback too,
	// where every local user could read it; and only for clients that may get the path /metrics from the API server,
	// which Client asks.
	Metrics string
	// MetricsClientCA is the file of the authority whose client certificates name users that may read metrics, beside
	// tokens; tokens alone do if "".
	MetricsClientCA string
	// Client reviews clients that read /metrics.
	Client   kubernetes.Interface
	Handler  http.Handler // of TokenReviews
	Gatherer prometheus.Gatherer
	Ready    func() error
	Logger   *slog.Logger
}

// Server serves TokenReviews, health and metrics.
type Server struct {
	config                   ServerConfig
	ports                    httpserve.Set
	webhook, health, metrics net.Listener
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
	webhook := s.mux()
	webhook.Handle("/authenticate", s.config.Handler)
	if s.config.ClientCA != "" { // without it every local user gets this far
		webhook.Handle("GET /metrics", httpserve.Metrics(s.config.Gatherer, s.config.Logger))
	}
	// An API server asks all on one connection, and makes another for each question above this, just when there are too
	// many.
	s.ports.Handle(tls.NewListener(s.webhook, files.Config()), webhook).HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 10_000}
	if s.config.Health != "" {
		if s.health, err = s.ports.Open(ctx, "health", s.config.Health); err != nil {
			return err
		}
		s.ports.Handle(s.health, s.mux())
	}
	if s.config.Metrics == "" {
		return nil
	}
	return s.openMetrics(ctx)
}

// openMetrics opens the port of metrics for those who may get them.
func (s *Server) openMetrics(ctx context.Context) error {
	c := s.config
	gate, err := metricsgate.New(metricsgate.Config{Client: c.Client, Logger: c.Logger, Next: httpserve.Metrics(c.Gatherer, c.Logger)})
	if err != nil {
		return err
	}
	files, err := httpserve.ReadFiles("metrics", c.Certificate, c.Key, c.MetricsClientCA, c.Logger)
	if err != nil {
		return err
	}
	if s.metrics, err = s.ports.Open(ctx, "metrics", c.Metrics); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", gate)
	s.ports.Handle(tls.NewListener(s.metrics, files.ConfigIfGiven()), mux)
	return nil
}

func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	httpserve.Health(mux, s.config.Ready)
	return mux
}

// Address is where TokenReviews are answered.
func (s *Server) Address() net.Addr { return s.webhook.Addr() }

// HealthAddress is where health is served without TLS, nil if nowhere.
func (s *Server) HealthAddress() net.Addr { return addressOf(s.health) }

// MetricsAddress is where metrics are served to those who may get them, nil if nowhere.
func (s *Server) MetricsAddress() net.Addr { return addressOf(s.metrics) }

func addressOf(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

// Serve answers until ctx is done.
func (s *Server) Serve(ctx context.Context) error { return s.ports.Serve(ctx) }
