// SPDX-License-Identifier: Apache-2.0

package filestore

import "github.com/prometheus/client_golang/prometheus"

// collector reports at each scrape what the disk has that volumes are on.
type collector struct{ files *Store }

// NewCollector reports the disk of a store.
func NewCollector(files *Store) prometheus.Collector { return collector{files} }

var (
	volumeDiskSize      = prometheus.NewDesc("muster_volumes_disk_size_bytes", "Size of the host's disk that volumes are on.", nil, nil)
	volumeDiskAvailable = prometheus.NewDesc("muster_volumes_disk_available_bytes", "What the host's disk has left that volumes are on.", nil, nil)
	volumeDiskRoom      = prometheus.NewDesc("muster_volumes_disk_room_bytes", "What is left for new volumes: 0 while the disk has less than the reserve.", nil, nil)
)

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- volumeDiskSize
	ch <- volumeDiskAvailable
	ch <- volumeDiskRoom
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	space, err := c.files.Space()
	if err != nil { // no figure is better than a wrong one
		return
	}
	ch <- prometheus.MustNewConstMetric(volumeDiskSize, prometheus.GaugeValue, float64(space.Total))
	ch <- prometheus.MustNewConstMetric(volumeDiskAvailable, prometheus.GaugeValue, float64(space.Available))
	ch <- prometheus.MustNewConstMetric(volumeDiskRoom, prometheus.GaugeValue, float64(space.Room()))
}
