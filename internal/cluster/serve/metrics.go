// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/cluster/supervise"
)

// componentCollector reports the state of the supervised processes to Prometheus at each scrape.
type componentCollector struct{ service *Service }

var (
	componentReady = prometheus.NewDesc("muster_component_ready", "1 if the component serves, 0 if not.", []string{"cluster", "component"}, nil)
	componentStart = prometheus.NewDesc("muster_component_restarts_total", "Times that the component had to be started again since the service started.", []string{"cluster", "component"}, nil)
)

func (c componentCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- componentReady
	ch <- componentStart
}

func (c componentCollector) Collect(ch chan<- prometheus.Metric) {
	collect(ch, "", c.service.components())
	for _, h := range c.service.clusters() {
		collect(ch, h.dir.Namespace(), h.components())
	}
}

func collect(ch chan<- prometheus.Metric, cluster string, components []supervise.Status) {
	for _, status := range components {
		ready := 0.0
		if status.State == supervise.Ready {
			ready = 1
		}
		ch <- prometheus.MustNewConstMetric(componentReady, prometheus.GaugeValue, ready, cluster, status.Name)
		ch <- prometheus.MustNewConstMetric(componentStart, prometheus.CounterValue, float64(status.Restarts), cluster, status.Name)
	}
}
