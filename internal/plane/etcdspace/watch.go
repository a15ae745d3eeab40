// SPDX-License-Identifier: Apache-2.0

package etcdspace

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/plane/diskreserve"
)

// look is the interval at which an etcd is asked for its space.
const look = 10 * time.Second

// soon is the pause before an etcd is asked again that did not answer: it may be about to start, or to end on a full disk
// unless it is told to take no writes.
const soon = 500 * time.Millisecond

// Watch keeps what an etcd said last of its space. Its zero value has heard nothing. It is safe for use by many at once.
type Watch struct {
	mu   sync.Mutex
	last Space
}

// Run asks until the context ends, and has etcd take no writes while the disk is full. The function warn is told once that
// etcd has raised its alarm.
func (w *Watch) Run(ctx context.Context, u Upkeep, disk *diskreserve.Reserve, warn func(Space), log *slog.Logger) {
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	// An alarm may be the disk's that was full, also before this service began, but not if it came up while there was room.
	disks := true
	for {
		state, changed := disk.State()
		now, err := u.follow(ctx, state, disks)
		switch {
		case err == nil:
			disks = state == diskreserve.Full || disks && (state != diskreserve.Plenty || now.NoSpace)
			if before := w.keep(now); now.NoSpace && !before.NoSpace {
				warn(now)
			}
		case ctx.Err() == nil:
			log.Debug("asking etcd for its space", "error", err)
		}
		again := ticks.C
		if err != nil {
			again = time.After(soon)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
		}
	}
}

// keep keeps what etcd said, and returns what it said before.
func (w *Watch) keep(now Space) (before Space) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.last = w.last, now
	return before
}

// Last is what etcd said last; a Quota of 0 if it has said nothing.
func (w *Watch) Last() Space {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// collector reports at each scrape the space of each cluster's etcd.
type collector struct{ spaces func() map[string]Space }

// NewCollector reports the space of etcds by the namespace of their cluster; the management plane's has none.
func NewCollector(spaces func() map[string]Space) prometheus.Collector { return collector{spaces} }

var (
	size    = prometheus.NewDesc("muster_etcd_size_bytes", "Size of the file of an etcd, the cluster's or, without one, the management plane's.", []string{"cluster"}, nil)
	inUse   = prometheus.NewDesc("muster_etcd_in_use_bytes", "What of the file of an etcd holds objects and their history.", []string{"cluster"}, nil)
	quota   = prometheus.NewDesc("muster_etcd_quota_bytes", "The most that the file of an etcd may have.", []string{"cluster"}, nil)
	noSpace = prometheus.NewDesc("muster_etcd_no_space", "1 while an etcd has the alarm NOSPACE, and takes deletions alone.", []string{"cluster"}, nil)
)

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{size, inUse, quota, noSpace} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for cluster, s := range c.spaces() {
		if s.Quota == 0 {
			continue
		}
		raised := 0.0
		if s.NoSpace {
			raised = 1
		}
		for d, value := range map[*prometheus.Desc]float64{size: float64(s.Size), inUse: float64(s.InUse), quota: float64(s.Quota), noSpace: raised} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, cluster)
		}
	}
}
