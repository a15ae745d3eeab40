// SPDX-License-Identifier: Apache-2.0

package planerollout

import "github.com/prometheus/client_golang/prometheus"

// collector reports at each scrape how the API servers of each cluster changed.
type collector struct {
	figures func() map[string]Figures
}

// NewCollector reports changes of API servers by the namespace of their cluster.
func NewCollector(figures func() map[string]Figures) prometheus.Collector { return collector{figures} }

var (
	rollouts = prometheus.NewDesc("muster_plane_rollouts_total",
		"Changes of the cluster's API servers that ended since the service started, by their result: changed or refused.", []string{"cluster", "result"}, nil)
	duration = prometheus.NewDesc("muster_plane_rollout_duration_seconds",
		"How long changes of the cluster's API servers took that were not refused.", []string{"cluster"}, nil)
)

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- rollouts
	ch <- duration
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for cluster, f := range c.figures() {
		ch <- prometheus.MustNewConstMetric(rollouts, prometheus.CounterValue, float64(f.Changed), cluster, "changed")
		ch <- prometheus.MustNewConstMetric(rollouts, prometheus.CounterValue, float64(f.Refused), cluster, "refused")
		ch <- prometheus.MustNewConstHistogram(duration, uint64(f.Changed), f.Seconds, f.Within, cluster) //nolint:gosec // G115: a count
	}
}
