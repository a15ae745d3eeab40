// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/storage/filestore"
)

// componentCollector reports the state of the supervised processes to Prometheus at each scrape.
type componentCollector struct{ service *Service }

var (
	componentReady  = prometheus.NewDesc("muster_component_ready", "1 if the component serves, 0 if not.", []string{"cluster", "component"}, nil)
	componentMemory = prometheus.NewDesc("muster_component_memory_limit_bytes", "Memory that the component is held to; there is none if it is held to no amount.", []string{"cluster", "component"}, nil)
	componentEnds   = prometheus.NewDesc("muster_component_memory_limit_ends_total", "Times that the kernel ended the component at its memory limit since the service started, or the cluster was changed.", []string{"cluster", "component"}, nil)
	componentStart  = prometheus.NewDesc("muster_component_restarts_total", "Times that the component had to be started again since the service started.", []string{"cluster", "component"}, nil)
)

func (c componentCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- componentReady
	ch <- componentStart
	ch <- componentMemory
	ch <- componentEnds
}

func (c componentCollector) Collect(ch chan<- prometheus.Metric) {
	collect(ch, "", c.service.components())
	for _, h := range c.service.clusters() {
		collect(ch, h.dir.Namespace(), h.components())
	}
}

// volumeCollector reports at each scrape what the disk has that volumes are on.
type volumeCollector struct{ files *filestore.Store }

var (
	volumeDiskSize      = prometheus.NewDesc("muster_volumes_disk_size_bytes", "Size of the host's disk that volumes are on.", nil, nil)
	volumeDiskAvailable = prometheus.NewDesc("muster_volumes_disk_available_bytes", "What the host's disk has left that volumes are on.", nil, nil)
	volumeDiskRoom      = prometheus.NewDesc("muster_volumes_disk_room_bytes", "What is left for new volumes: 0 while the disk has less than the reserve.", nil, nil)
)

func (c volumeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- volumeDiskSize
	ch <- volumeDiskAvailable
	ch <- volumeDiskRoom
}

func (c volumeCollector) Collect(ch chan<- prometheus.Metric) {
	space, err := c.files.Space()
	if err != nil { // no figure is better than a wrong one
		return
	}
	ch <- prometheus.MustNewConstMetric(volumeDiskSize, prometheus.GaugeValue, float64(space.Total))
	ch <- prometheus.MustNewConstMetric(volumeDiskAvailable, prometheus.GaugeValue, float64(space.Available))
	ch <- prometheus.MustNewConstMetric(volumeDiskRoom, prometheus.GaugeValue, float64(space.Room()))
}

func collect(ch chan<- prometheus.Metric, cluster string, components []supervise.Status) {
	for _, status := range components {
		ready := 0.0
		if status.State == supervise.Ready {
			ready = 1
		}
		ch <- prometheus.MustNewConstMetric(componentReady, prometheus.GaugeValue, ready, cluster, status.Name)
		ch <- prometheus.MustNewConstMetric(componentStart, prometheus.CounterValue, float64(status.Restarts), cluster, status.Name)
		if status.Memory.Limit > 0 {
			ch <- prometheus.MustNewConstMetric(componentMemory, prometheus.GaugeValue, float64(status.Memory.Limit), cluster, status.Name)
			ch <- prometheus.MustNewConstMetric(componentEnds, prometheus.CounterValue, float64(status.Memory.Ended), cluster, status.Name)
		}
	}
}
