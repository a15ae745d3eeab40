// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/auditlog"
)

const (
	// securityLogLook is how often the state of the log of security is looked at, for an Event.
	securityLogLook = 5 * time.Second
	// securityLogPause is between two Events. client-go counts one that comes within 6 minutes of one like it as the same, and keeps the first one's message.
	securityLogPause = 15 * time.Minute
)

// newSecurityLog makes what keeps the lines of the cluster's audit log that matter for security.
func (h *hosted) newSecurityLog() (*auditlog.Splitter, error) {
	return auditlog.New(auditlog.Config{Path: h.dir.Audit(0), Kept: h.dir.SecurityLog(0), Log: h.log}) // of the one instance
}

// securityNotice decides when people are told that lines are gone which are younger than a day.
type securityNotice struct {
	told auditlog.State
	at   time.Time
}

func (n *securityNotice) due(state auditlog.State, now time.Time) bool {
	if !state.Short(now) || state.Whole.Equal(n.told.Whole) || now.Sub(n.at) < securityLogPause {
		return false
	}
	n.told, n.at = state, now
	return true
}

// tellSecurityLog records an Event of the Cluster when lines are gone that are younger than a day, until the context ends.
func (h *hosted) tellSecurityLog(ctx context.Context, plane manager.Manager) {
	recorder := plane.GetEventRecorder("muster")
	namespace := h.dir.Namespace()
	var notice securityNotice
	for pause(ctx, securityLogLook) == nil {
		state := h.securityState()
		if !notice.due(state, time.Now()) {
			continue
		}
		h.log.Warn("lines of the log of security are gone that are younger than a day", "whole_since", state.Whole)
		cluster := &v1alpha1.Cluster{}
		if err := plane.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace}, cluster); err != nil {
			notice = securityNotice{} // it is told when the management plane answers
			continue
		}
		recorder.Eventf(cluster, nil, corev1.EventTypeWarning, "SecurityLogShort", "Rotate", "%s", securityLogMessage(state))
	}
}

func securityLogMessage(state auditlog.State) string {
	return fmt.Sprintf("the security lines of the audit log are whole from %s on: lines before that, younger than a day, are gone; "+
		"`muster logs security --since 10m` shows who sends so many requests, and a copy elsewhere keeps more", state.Whole.UTC().Format(time.RFC3339))
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
