// SPDX-License-Identifier: Apache-2.0

package auditlog

import "github.com/prometheus/client_golang/prometheus"

// collector reports at each scrape since when each cluster's log of security is whole.
type collector struct {
	states func() map[string]State
}

// NewCollector reports logs of security by the namespace of their cluster.
func NewCollector(states func() map[string]State) prometheus.Collector { return collector{states} }

var securityLogWhole = prometheus.NewDesc("muster_security_log_whole_since_timestamp_seconds",
	"Unix time since which no line is missing in the security lines of the cluster's audit log.", []string{"cluster"}, nil)

func (c collector) Describe(ch chan<- *prometheus.Desc) { ch <- securityLogWhole }

func (c collector) Collect(ch chan<- prometheus.Metric) {
	for cluster, state := range c.states() {
		if !state.Whole.IsZero() {
			ch <- prometheus.MustNewConstMetric(securityLogWhole, prometheus.GaugeValue, float64(state.Whole.UnixMicro())/1e6, cluster)
		}
	}
}
