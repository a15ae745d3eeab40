// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/plane/runner"
)

// collector reports the state of supervised processes to Prometheus at each scrape.
type collector struct {
	processes func() map[string][]runner.Status
}

// NewCollector reports processes by the namespace of their cluster, which is empty for the account's own.
func NewCollector(processes func() map[string][]runner.Status) prometheus.Collector {
	return collector{processes}
}

var (
	componentReady  = prometheus.NewDesc("muster_component_ready", "1 if the component serves, 0 if not.", []string{"cluster", "component"}, nil)
	componentMemory = prometheus.NewDesc("muster_component_memory_limit_bytes", "Memory that the component is held to; there is none if it is held to no amount.", []string{"cluster", "component"}, nil)
	componentEnds   = prometheus.NewDesc("muster_component_memory_limit_ends_total", "Times that the kernel ended the component at its memory limit since the service started, or the cluster was changed.", []string{"cluster", "component"}, nil)
	componentStart  = prometheus.NewDesc("muster_component_restarts_total", "Times that the component had to be started again since the service started.", []string{"cluster", "component"}, nil)
)

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- componentReady
	ch <- componentStart
	ch <- componentMemory
	ch <- componentEnds
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	for cluster, components := range c.processes() {
		for _, status := range components {
			collect(ch, cluster, status)
		}
	}
}

func collect(ch chan<- prometheus.Metric, cluster string, status runner.Status) {
	ready := 0.0
	if status.State == runner.Ready {
		ready = 1
	}
	ch <- prometheus.MustNewConstMetric(componentReady, prometheus.GaugeValue, ready, cluster, status.Name)
	ch <- prometheus.MustNewConstMetric(componentStart, prometheus.CounterValue, float64(status.Restarts), cluster, status.Name)
	if status.Memory.Limit > 0 {
		ch <- prometheus.MustNewConstMetric(componentMemory, prometheus.GaugeValue, float64(status.Memory.Limit), cluster, status.Name)
		ch <- prometheus.MustNewConstMetric(componentEnds, prometheus.CounterValue, float64(status.Memory.Ended), cluster, status.Name)
	}
}
