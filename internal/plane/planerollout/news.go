// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// newsLook is the interval at which the Events are brought up to date.
	newsLook = time.Second
	// maxNews is how many Events wait for the management plane; older ones are dropped.
	maxNews = 20
)

// Reasons of Events of a Cluster about its API servers.
const (
	reasonChanging = "APIServersChanging"
	reasonChanged  = "APIServersChanged"
	reasonRefused  = "APIServersChangeRefused"
)

// buckets are of the time that API servers take to change, in seconds.
func buckets() []float64 { return []float64{5, 10, 15, 20, 30, 60, 120, 300, 600} }

// News are the beginnings and ends of changes of the API servers of a cluster, for Events of the Cluster and for metrics. Its zero
// value has none. It is safe for use by many at once.
type News struct {
	mu      sync.Mutex
	waiting []event
	figures Figures
}

// event is an Event that is to be recorded.
type event struct{ kind, reason, message string }

// Figures count the changes of the API servers of a cluster since the service started.
type Figures struct {
	// Changed and Refused are how many changes ended so.
	Changed, Refused int
	// Seconds is how long those that were not refused took together, and Within how many of them took at most the time
	// of each bucket.
	Seconds float64
	Within  map[float64]uint64
}

// Began notes that API servers begin to change.
func (n *News) Began(message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.add(corev1.EventTypeNormal, reasonChanging, message)
}

// Ended notes what came of a rollout; refusal says why the plane runs on as it was, or is "".
func (n *News) Ended(o Outcome, refusal string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case refusal != "":
		n.figures.Refused++
		n.add(corev1.EventTypeWarning, reasonRefused, "it runs on as it was: "+refusal)
	case o.Took > 0:
		n.figures.Changed++
		n.figures.Seconds += o.Took.Seconds()
		if n.figures.Within == nil {
			n.figures.Within = map[float64]uint64{}
		}
		for _, bucket := range buckets() {
			if o.Took.Seconds() <= bucket {
				n.figures.Within[bucket]++
			}
		}
		serve := "serves"
		if len(o.Servers) > 1 {
			serve = "serve"
		}
		n.add(corev1.EventTypeNormal, reasonChanged, fmt.Sprintf("%s %s, and the change took %s", strings.Join(o.Servers, " and "), serve, o.Took.Round(100*time.Millisecond)))
	}
}

// Warn has an Event of another reason wait.
func (n *News) Warn(reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.add(corev1.EventTypeWarning, reason, message)
}

// add has an Event wait. n.mu is held.
func (n *News) add(kind, reason, message string) {
	n.waiting = append(n.waiting, event{kind, reason, message})
	n.waiting = n.waiting[max(len(n.waiting)-maxNews, 0):]
}

// Figures returns the counts so far.
func (n *News) Figures() Figures {
	n.mu.Lock()
	defer n.mu.Unlock()
	figures := n.figures
	figures.Within = map[float64]uint64{}
	for _, bucket := range buckets() {
		figures.Within[bucket] = n.figures.Within[bucket]
	}
	return figures
}

// take returns the Events that wait, which wait no longer.
func (n *News) take() []event {
	n.mu.Lock()
	defer n.mu.Unlock()
	waiting := n.waiting
	n.waiting = nil
	return waiting
}

// Tell records Events of a Cluster, by its namespace in the management plane, until the context ends.
func (n *News) Tell(ctx context.Context, plane manager.Manager, namespace string) {
	recorder := plane.GetEventRecorder("muster")
	ticks := time.NewTicker(newsLook)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		n.record(ctx, plane.GetAPIReader(), recorder, namespace)
	}
}

// record records the Events that wait, if the management plane answers.
func (n *News) record(ctx context.Context, plane client.Reader, recorder events.EventRecorder, namespace string) {
	waiting := n.take()
	if len(waiting) == 0 {
		return
	}
	cluster := &v1alpha1.Cluster{}
	if err := plane.Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace}, cluster); err != nil {
		n.giveBack(waiting)
		return
	}
	for _, e := range waiting {
		recorder.Eventf(cluster, nil, e.kind, e.reason, "Replace", "%s", e.message)
	}
}

// giveBack has Events wait again, before those that came meanwhile.
func (n *News) giveBack(earlier []event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	later := n.waiting
	n.waiting = nil
	for _, e := range append(earlier, later...) {
		n.add(e.kind, e.reason, e.message)
	}
}
