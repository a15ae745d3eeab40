// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// noticeLook is how often the state of the log is looked at, for an Event.
	noticeLook = 5 * time.Second
	// noticePause is between two Events. client-go counts one that comes within 6 minutes of one like it as the same,
	// and keeps the first one's message.
	noticePause = 15 * time.Minute
)

// Notice decides when an Event says that lines are gone which are younger than a day. Its zero value has recorded no
// Event.
type Notice struct {
	told State
	at   time.Time
}

// due reports whether an Event is due.
func (n *Notice) due(state State, now time.Time) bool {
	if !state.Short(now) || state.Whole.Equal(n.told.Whole) || now.Sub(n.at) < noticePause {
		return false
	}
	n.told, n.at = state, now
	return true
}

// Tell records an Event of a Cluster, by its namespace in the management plane, when lines are gone that are younger
// than a day, until the context ends.
func (n *Notice) Tell(ctx context.Context, plane manager.Manager, namespace string, state func() State, log *slog.Logger) {
	recorder := plane.GetEventRecorder("muster")
	ticks := time.NewTicker(noticeLook)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		state := state()
		if !n.due(state, time.Now()) {
			continue
		}
		log.Warn("lines of the log of security are gone that are younger than a day", "whole_since", state.Whole)
		cluster := &v1alpha1.Cluster{}
		if err := plane.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace}, cluster); err != nil {
			*n = Notice{} // the Event is due again when the management plane answers
			continue
		}
		recorder.Eventf(cluster, nil, corev1.EventTypeWarning, "SecurityLogShort", "Rotate", "%s", message(state))
	}
}

func message(state State) string {
	return fmt.Sprintf("the security lines of the audit log are whole from %s on: lines before that, younger than a day, are gone; "+
		"`muster logs security --since 10m` shows who sends so many requests, and a copy elsewhere keeps more", state.Whole.UTC().Format(time.RFC3339))
}
