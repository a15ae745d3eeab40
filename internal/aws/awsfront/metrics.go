// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are documented in docs/service.md. Their labels are services and actions of the tables, and codes that are
// written here: nothing that a caller chooses.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// newMetrics registers the metrics, or finds those that an earlier Front of the process has registered.
func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_aws_requests_total", Help: "Requests of AWS's tools, by the code of the refusal, which is empty for those that were not refused.",
		}, []string{"service", "action", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muster_aws_request_duration_seconds", Help: "Time from having a request's head to having written its answer.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16), // 0.5 ms to 16 s
		}, []string{"service", "action"}),
	}
	if registerer == nil {
		return m, nil
	}
	var err error
	if m.requests, err = registered(registerer, m.requests); err != nil {
		return nil, err
	}
	m.seconds, err = registered(registerer, m.seconds)
	return m, err
}

func registered[C prometheus.Collector](registerer prometheus.Registerer, collector C) (C, error) {
	err := registerer.Register(collector)
	if again, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if earlier, ok := again.ExistingCollector.(C); ok {
			return earlier, nil
		}
	}
	if err != nil {
		return collector, fmt.Errorf("registering metrics of AWS APIs: %w", err)
	}
	return collector, nil
}

func (m *metrics) observe(service, action, code string, took time.Duration) {
	m.requests.WithLabelValues(service, action, code).Inc()
	m.seconds.WithLabelValues(service, action).Observe(took.Seconds())
}
