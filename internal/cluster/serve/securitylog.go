// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/plane/auditlog"
)

// newSecurityLog makes what keeps the lines of the cluster's audit log that matter for security.
func (h *hosted) newSecurityLog() (*auditlog.Splitter, error) {
	return auditlog.New(auditlog.Config{Path: h.dir.Audit(0), Kept: h.dir.SecurityLog(0), Log: h.log}) // of the one instance
}

// securityState is since when the log of security is whole.
func (h *hosted) securityState() auditlog.State {
	h.mu.Lock()
	splitter := h.securityLog
	h.mu.Unlock()
	if splitter == nil {
		return auditlog.State{}
	}
	return splitter.State()
}

// securityLogCollector reports at each scrape since when each cluster's log of security is whole.
type securityLogCollector struct{ service *Service }

var securityLogWhole = prometheus.NewDesc("muster_security_log_whole_since_timestamp_seconds",
	"Unix time since which no line is missing in the security lines of the cluster's audit log.", []string{"cluster"}, nil)

func (c securityLogCollector) Describe(ch chan<- *prometheus.Desc) { ch <- securityLogWhole }

func (c securityLogCollector) Collect(ch chan<- prometheus.Metric) {
	for _, h := range c.service.clusters() {
		if state := h.securityState(); !state.Whole.IsZero() {
			ch <- prometheus.MustNewConstMetric(securityLogWhole, prometheus.GaugeValue, float64(state.Whole.UnixMicro())/1e6, h.dir.Namespace())
		}
	}
}
