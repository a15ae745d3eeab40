// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Why a connection was refused.
const (
	refusedSource   = "source"
	refusedLimit    = "limit"
	refusedNoTarget = "no_target"
)

type metrics struct {
	registry    *prometheus.Registry
	open        *prometheus.GaugeVec
	connections *prometheus.CounterVec
	failures    *prometheus.CounterVec
	refused     *prometheus.CounterVec
}

func newMetrics() *metrics {
	labels := []string{"cluster", "namespace", "service"}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_balancer_open_connections", Help: "Connections of TCP and flows of UDP that are open.",
		}, labels),
		connections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_balancer_connections_total", Help: "Connections of TCP and flows of UDP that a target took.",
		}, labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_balancer_target_failures_total", Help: "Targets that did not take a connection; another was tried.",
		}, labels),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_balancer_refused_total", Help: "Connections and packets that were refused, by the reason.",
		}, append(slices.Clip(labels), "reason")),
	}
	m.registry.MustRegister(m.open, m.connections, m.failures, m.refused)
	return m
}

func (f *front) count() *metrics { return f.server.metrics }

// labels are the values of the labels of a balancer, and some more.
func (f *front) labels(more ...string) []string {
	return append([]string{f.owner.cluster, f.owner.namespace, f.owner.service}, more...)
}
