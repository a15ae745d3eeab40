// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// nodeFirst is the priority of a machine whose Node has changed. Without it a machine whose Node is Ready would wait
// behind all that are still to be launched.
const nodeFirst = 100

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// machinesOfNodes enqueues the machine of each Node that has changed, before machines of which nothing is told. Nodes that
// are listed when the service starts have not changed.
func machinesOfNodes() handler.TypedFuncs[*corev1.Node, reconcile.Request] {
	enqueue := func(node *corev1.Node, queue requestQueue, priority int) {
		id := machineOf(node)
		if id == "" {
			return
		}
		if first, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			first.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request(id))
			return
		}
		queue.Add(request(id))
	}
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], queue requestQueue) {
			priority := nodeFirst
			if e.IsInInitialList {
				priority = handler.LowPriority
			}
			enqueue(e.Object, queue, priority)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], queue requestQueue) {
			enqueue(e.ObjectNew, queue, nodeFirst)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Node], queue requestQueue) {
			enqueue(e.Object, queue, nodeFirst)
		},
	}
}
