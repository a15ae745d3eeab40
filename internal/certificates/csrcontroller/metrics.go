// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/platform/decision"
)

const namespace = "muster_certificates"

// metrics are documented in docs/certificate-controller.md. Labels are signers that are configured, rules, outcomes and
// keys: nothing that a requester chooses.
type metrics struct {
	decisions, outcomes, errors, pruned     *prometheus.CounterVec
	approveSeconds, signSeconds, allSeconds *prometheus.HistogramVec
}

func newMetrics(c *Controller) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 18), // 1 ms to 131 s
		}, []string{"signer"})
	}
	m := &metrics{
		decisions: counter("decisions_total", "Decisions about certificate signing requests, by the rule that decided (none on approval).", "signer", "verdict", "rule"),
		outcomes:  counter("rule_outcomes_total", "What each rule said, where it applied.", "signer", "rule", "outcome"),
		errors:    counter("errors_total", "Steps that failed and are tried again.", "signer", "step"),
		pruned:    counter("pruned_total", "Requests that were deleted because newer ones supersede them.", "signer"),
		approveSeconds: histogram("approve_duration_seconds",
			"Time from the creation of a request, or from first seeing it if that was within two seconds, to its approval."),
		signSeconds: histogram("sign_duration_seconds", "Time from the approval, or from seeing one of somebody else, to having written the certificate."),
		allSeconds:  histogram("issue_duration_seconds", "Time from the creation of a request that was approved here to having written its certificate."),
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, value)
	}
	for _, collector := range []prometheus.Collector{
		m.decisions, m.outcomes, m.errors, m.pruned, m.approveSeconds, m.signSeconds, m.allSeconds, newState(c),
		gauge("queue_depth", "Requests that no worker has taken yet.", func() float64 { return float64(c.queue.depth()) }),
		gauge("waiting", "Requests that wait for a fact or are being judged.", func() float64 { return float64(c.ledger.waiting()) }),
		gauge("workers", "Requests that can be handled at once.", func() float64 { return float64(c.crew.count()) }),
		gauge("leader", "1 while this replica decides.", func() float64 {
			if c.leading.Load() && c.tenure.Check() == nil {
				return 1
			}
			return 0
		}),
	} {
		if err := c.config.Metrics.Register(collector); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) decided(d judgement) {
	signer := d.request.SignerName
	m.decisions.WithLabelValues(signer, string(d.Verdict), string(d.Rule)).Inc()
	for _, c := range d.Checks {
		if c.Outcome != decision.NotApplicable {
			m.outcomes.WithLabelValues(signer, string(c.Rule), string(c.Outcome)).Inc()
		}
	}
}

func (m *metrics) approved(d judgement, took time.Duration) {
	m.approveSeconds.WithLabelValues(d.request.SignerName).Observe(took.Seconds())
}

func (m *metrics) signed(d judgement, took time.Duration) {
	m.signSeconds.WithLabelValues(d.request.SignerName).Observe(took.Seconds())
}

func (m *metrics) issued(d judgement, took time.Duration) {
	m.allSeconds.WithLabelValues(d.request.SignerName).Observe(took.Seconds())
}
