// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/socketdir"
)

// Why a connection is refused.
const (
	refusedLimit    = "limit"
	refusedNoServer = "no_server"
)

// metrics of a front.
type metrics struct {
	registry    *prometheus.Registry
	connections prometheus.Counter
	repeated    prometheus.Counter
	refused     *prometheus.CounterVec
}

func newMetrics(p *pool) *metrics {
	m := &metrics{
		registry:    prometheus.NewRegistry(),
		connections: prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_plane_front_connections_total", Help: "Connections that were passed to a kube-apiserver."}),
		repeated:    prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_plane_front_repeated_connections_total", Help: "Times a connection was passed to another kube-apiserver, or the same one again, because it went without a word."}),
		refused:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_plane_front_refused_connections_total", Help: "Connections that were reset, by reason: limit or no_server."}, []string{"reason"}),
	}
	m.registry.MustRegister(m.connections, m.repeated, m.refused, servers{p})
	return m
}

// servers collects the state of each server.
type servers struct{ pool *pool }

func serverOpen() *prometheus.Desc {
	return prometheus.NewDesc("muster_plane_front_server_connections", "Open connections to a kube-apiserver.", []string{"server"}, nil)
}

func serverReady() *prometheus.Desc {
	return prometheus.NewDesc("muster_plane_front_server_ready", "Whether a kube-apiserver answered the last probe with 200.", []string{"server"}, nil)
}

// Describe implements prometheus.Collector.
func (servers) Describe(to chan<- *prometheus.Desc) { to <- serverOpen(); to <- serverReady() }

// Collect implements prometheus.Collector.
func (s servers) Collect(to chan<- prometheus.Metric) {
	for _, m := range s.pool.snapshot() {
		ready := 0.0
		if m.ready {
			ready = 1
		}
		to <- prometheus.MustNewConstMetric(serverOpen(), prometheus.GaugeValue, float64(m.open), m.Address.String())
		to <- prometheus.MustNewConstMetric(serverReady(), prometheus.GaugeValue, ready, m.Address.String())
	}
}

// serveStatus answers at the socket until the context ends.
func (f *Front) serveStatus(ctx context.Context) error {
	listener, err := socketdir.Listen(ctx, f.config.Socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	// It is ready when it listens: whether servers are ready, servers say.
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.Handle("GET /metrics", httpserve.Metrics(f.metrics.registry, f.config.Log))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 4 << 10}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the socket of the front: %w", err)
	}
	return nil
}
