// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/prometheus/client_golang/prometheus"

// counters are what is counted.
type counters struct {
	refused            *prometheus.CounterVec
	connections, flows prometheus.Counter
	in, out            prometheus.Counter
}

func newCounters(registry prometheus.Registerer, e *egress) *counters {
	const names = "muster_egress"
	bytes := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: names, Name: "bytes_total", Help: "Bytes of connections and datagrams, by direction seen from the VPC."}, []string{"direction"})
	begun := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: names, Name: "flows_total", Help: "Connections and flows of datagrams that left the VPC."}, []string{"protocol"})
	c := &counters{
		refused:     prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: names, Name: "refused_total", Help: "What was not let out, by reason."}, []string{"reason"}),
		connections: begun.WithLabelValues("tcp"), flows: begun.WithLabelValues("udp"),
		in: bytes.WithLabelValues("in"), out: bytes.WithLabelValues("out"),
	}
	registry.MustRegister(c.refused, bytes, begun)
	for protocol, all := range map[string]*flows{"tcp": e.connections, "tcp-opening": e.halfOpen, "udp": e.datagrams, "icmp": e.echoes} {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: names, Name: "flows", Help: "Connections and flows that there are.", ConstLabels: prometheus.Labels{"protocol": protocol},
		}, func() float64 { return float64(all.size()) }))
	}
	return c
}
