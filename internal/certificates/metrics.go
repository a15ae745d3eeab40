// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	decisions *prometheus.CounterVec
	errors    *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer, depth, waiting func() int) (*metrics, error) {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_certificates_decisions_total",
			Help: "Decisions about certificate signing requests, by the rule that decided (none on approval).",
		}, []string{"signer", "verdict", "rule"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_certificates_errors_total",
			Help: "Steps that failed and are tried again.",
		}, []string{"signer", "step"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "muster_certificates_issue_duration_seconds",
			Help:    "Time from first seeing a request to having written its certificate.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 18), // 1 ms to 131 s
		}, []string{"signer"}),
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	for _, c := range []prometheus.Collector{
		m.decisions, m.errors, m.durations,
		gauge("muster_certificates_queue_depth", "Requests that no worker has taken yet.", depth),
		gauge("muster_certificates_waiting", "Requests that wait for a fact or are being judged.", waiting),
	} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) decided(d decision) {
	m.decisions.WithLabelValues(d.request.SignerName, string(d.Verdict), string(d.Rule)).Inc()
}

func (m *metrics) issued(signer string, took time.Duration) {
	m.durations.WithLabelValues(signer).Observe(took.Seconds())
}
