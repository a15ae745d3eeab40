// SPDX-License-Identifier: Apache-2.0

package loadbalancercontroller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/network/balancerplan"
	"muster.dev/muster/internal/platform/lru"
)

const (
	// component is the source of the Events.
	component = "muster"
	// repeat is how long after an Event it is written again if it still holds; the API server keeps Events for an hour
	// (--event-ttl).
	repeat = 61 * time.Minute
	// maxSaid is how many Events are remembered. A forgotten Event is written again, which changes nothing.
	maxSaid = 4096
)

// events writes each Event about a Service once an hour.
type events struct {
	cluster client.Client
	now     func() time.Time

	mutex sync.Mutex
	said  *lru.Map[string, time.Time] // by the Event's name
}

func newEvents(cluster client.Client, now func() time.Time) *events {
	return &events{cluster: cluster, now: now, said: lru.New[string, time.Time](maxSaid)}
}

// say writes an Event unless it is there.
func (e *events) say(ctx context.Context, service *corev1.Service, n balancerplan.Notice) error {
	sum := sha256.Sum256([]byte(string(service.UID) + "/" + n.Reason + "/" + n.Message))
	name, now := fmt.Sprintf("%s.%x", service.Name, sum[:8]), e.now()
	key := service.Namespace + "/" + name
	e.mutex.Lock()
	last, ok := e.said.Get(key)
	e.mutex.Unlock()
	if ok && now.Sub(last) < repeat {
		return nil
	}
	moment := metav1.NewTime(now)
	err := e.cluster.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: name},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Service", Namespace: service.Namespace, Name: service.Name,
			UID: service.UID, ResourceVersion: service.ResourceVersion,
		},
		Type: n.Type, Reason: n.Reason, Message: n.Message,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: moment, LastTimestamp: moment, Count: 1,
	})
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("writing the Event %s of Service %s/%s: %w", n.Reason, service.Namespace, service.Name, err)
	}
	e.mutex.Lock()
	e.said.Put(key, now)
	e.mutex.Unlock()
	return nil
}
