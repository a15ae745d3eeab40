// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics have the names of the original where it has them.
type metrics struct {
	pods    *prometheus.CounterVec
	missing prometheus.Counter
	without prometheus.Gauge
	took    prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	register := promauto.With(r)
	return &metrics{
		pods: register.NewCounterVec(prometheus.CounterOpts{
			Name: "pod_identity_webhook_pod_count", Help: "Pods that were given an AWS identity, by the way in which they get credentials.",
		}, []string{"method"}),
		missing: register.NewCounter(prometheus.CounterOpts{
			Name: "pod_identity_webhook_missing_sa_count", Help: "Pods whose service account was not known in time.",
		}),
		without: register.NewGauge(prometheus.GaugeOpts{
			Name: "muster_pod_identity_webhook_pods_without_identity", Help: "Pods that should have an AWS identity and were made while the webhook was away.",
		}),
		took: register.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_pod_identity_webhook_review_duration_seconds", Help: "Time in which a review was answered.", Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}),
	}
}
