// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"crypto/tls"
	"errors"
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
	// Health is the address of /healthz and /readyz, which tell nothing worth hiding; nothing if "".
	Health string
	// Metrics is the address of /metrics; nothing if "". It is TLS, on loopback too, where every local user could read
	// them; and only for clients that may get the path /metrics from the API server.
	Metrics string
	// CertFile and KeyFile are the serving certificate of /metrics, read again when they change. If "" one is made,
	// which only clients that skip most checks can verify.
	CertFile, KeyFile string
	// ClientCA is the file of the authority of client certificates that are taken for users of the API server; tokens
	// alone are if "". It takes a CertFile.
	ClientCA string
	// Client reviews clients that read /metrics.
	Client   kubernetes.Interface
	Gatherer prometheus.Gatherer
	Ready    func() error
	Logger   *slog.Logger
	Now      func() time.Time // time.Now if nil
}

// Server serves health and metrics.
type Server struct {
	config          ServerConfig
	ports           httpserve.Set
	health, metrics net.Listener
}

// Listen opens the ports.
func Listen(ctx context.Context, c ServerConfig) (*Server, error) {
	if c.Gatherer == nil || c.Ready == nil || c.Logger == nil {
		return nil, errors.New("a server of health and metrics needs metrics, readiness and a logger")
	}
	setDefaultClock(&c.Now)
	s := &Server{config: c, ports: httpserve.Set{Logger: c.Logger, Grace: time.Second}}
	if err := s.open(ctx); err != nil {
		s.ports.Close()
		return nil, err
	}
	return s, nil
}

func setDefaultClock(now *func() time.Time) {
	if *now == nil {
		*now = time.Now
	}
}

func (s *Server) open(ctx context.Context) error {
	var err error
	if s.config.Health != "" {
		health := http.NewServeMux()
		httpserve.Health(health, s.config.Ready)
		if s.health, err = s.ports.Open(ctx, "health", s.config.Health); err != nil {
			return err
		}
		s.ports.Handle(s.health, health)
	}
	if s.config.Metrics == "" {
		return nil
	}
	if s.metrics, err = s.ports.Open(ctx, "metrics", s.config.Metrics); err != nil {
		return err
	}
	gate, err := metricsgate.New(metricsgate.Config{
		Client: s.config.Client, Logger: s.config.Logger, Now: s.config.Now, Next: httpserve.Metrics(s.config.Gatherer, s.config.Logger),
	})
	if err != nil {
		return err
	}
	secure, err := servingCertificate(s.config)
	if err != nil {
		return err
	}
	metrics := http.NewServeMux()
	metrics.Handle("GET /metrics", gate)
	s.ports.Handle(tls.NewListener(s.metrics, secure), metrics)
	return nil
}

// HealthAddress is where health is served, nil if nowhere.
func (s *Server) HealthAddress() net.Addr { return addressOf(s.health) }

// MetricsAddress is where metrics are served, nil if nowhere.
func (s *Server) MetricsAddress() net.Addr { return addressOf(s.metrics) }

func addressOf(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

// Serve answers until ctx is done.
func (s *Server) Serve(ctx context.Context) error { return s.ports.Serve(ctx) }
