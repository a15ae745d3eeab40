// SPDX-License-Identifier: Apache-2.0

package certificates

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
	"k8s.io/client-go/kubernetes"
)

// ServerConfig says what is served where. Two equal addresses are one port.
type ServerConfig struct {
	// Health is the address of /healthz and /readyz, which tell nothing worth hiding; nothing if "".
	Health string
	// Metrics is the address of /metrics; nothing if "". On loopback it is plain HTTP; anywhere else it is TLS, and only for those
	// who may get the path /metrics from the API server.
	Metrics string
	// CertFile and KeyFile are the serving certificate of /metrics, read again when they change. If "" one is made, which only
	// those can verify who do not ask for much.
	CertFile, KeyFile string
	// Client reviews who reads /metrics.
	Client   kubernetes.Interface
	Gatherer prometheus.Gatherer
	Ready    func() error
	Logger   *slog.Logger
	Now      func() time.Time // time.Now if nil
}

// Server serves health and metrics.
type Server struct {
	config          ServerConfig
	health, metrics net.Listener // the same if it is one port
	servers         []*http.Server
	listeners       []net.Listener
}

// Listen opens the ports.
func Listen(ctx context.Context, c ServerConfig) (*Server, error) {
	if c.Gatherer == nil || c.Ready == nil || c.Logger == nil {
		return nil, errors.New("a server of health and metrics needs metrics, readiness and a logger")
	}
	setDefaultClock(&c.Now)
	s := &Server{config: c}
	if err := s.open(ctx); err != nil {
		for _, l := range s.listeners {
			_ = l.Close()
		}
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
	health, metrics := http.NewServeMux(), http.NewServeMux()
	answer := promhttp.HandlerFor(s.config.Gatherer, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelWarn)})
	health.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	health.HandleFunc("GET /readyz", s.readyz)
	var err error
	if s.config.Health != "" {
		if s.health, err = listen(ctx, "health", s.config.Health); err != nil {
			return err
		}
		s.serve(s.health, health)
	}
	switch {
	case s.config.Metrics == "":
		return nil
	case s.config.Metrics == s.config.Health && loopback(s.config.Metrics):
		health.Handle("GET /metrics", answer)
		s.metrics = s.health
		return nil
	case s.config.Metrics == s.config.Health:
		return fmt.Errorf("health and metrics cannot both be at %s: probes speak no TLS; give metrics another port", s.config.Metrics)
	}
	if s.metrics, err = listen(ctx, "metrics", s.config.Metrics); err != nil {
		return err
	}
	if loopback(s.config.Metrics) {
		metrics.Handle("GET /metrics", answer)
		s.serve(s.metrics, metrics)
		return nil
	}
	if s.config.Client == nil {
		return errors.New("metrics that are not on loopback need a client of the API server, which says who may read them")
	}
	certificates, err := newServingCertificate(s.config)
	if err != nil {
		return err
	}
	metrics.Handle("GET /metrics", newGate(s.config, answer))
	s.serve(tls.NewListener(s.metrics, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: certificates.get,
	}), metrics)
	return nil
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if err := s.config.Ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

func (s *Server) serve(l net.Listener, h http.Handler) {
	s.listeners = append(s.listeners, l)
	s.servers = append(s.servers, &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	})
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
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for n, server := range s.servers {
		group.Go(func() {
			if err := server.Serve(s.listeners[n]); !errors.Is(err, http.ErrServerClosed) {
				cancel(fmt.Errorf("serving health and metrics: %w", err))
			}
		})
	}
	<-ctx.Done()
	quick, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	for _, server := range s.servers {
		if server.Shutdown(quick) != nil {
			_ = server.Close() // whoever still reads after that is cut off
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
		return nil, fmt.Errorf("the address %q for %s is not an IP address and a port, such as 127.0.0.1:9443", address, what)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening the port for %s: %w", what, err)
	}
	return l, nil
}
