// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
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

// A machine comes first nodeFirstBurst times, and once more each nodeFirstEvery; otherwise it waits as all others do. A kubelet
// may change its Node as often as it likes, and those of a few machines would keep all workers from every other machine.
const (
	nodeFirstBurst = 10
	nodeFirstEvery = 10 * time.Second
)

// turns are how often machines may come first, by their ids. A machine without an entry has not come first.
type turns struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[string]*rate.Limiter
}

// priority is that of a machine whose Node has changed now.
func (t *turns) priority(id string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]*rate.Limiter{}
	}
	if t.of[id] == nil {
		t.of[id] = rate.NewLimiter(rate.Every(nodeFirstEvery), nodeFirstBurst)
	}
	if t.of[id].AllowN(t.now(), 1) {
		return nodeFirst
	}
	return 0
}

// forget drops what is known of a machine whose Node is gone. A kubelet cannot remove its Node.
func (t *turns) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, id)
}

// inTurn has a machine that is looked at again of itself wait as all others do, unless only the cache was behind: the queue
// would keep the priority that the machine came with for as long as it is looked at.
type inTurn struct{ reconcile.Reconciler }

// Reconcile implements [reconcile.Reconciler].
func (r inTurn) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.Reconciler.Reconcile(ctx, request)
	if err != nil || result.RequeueAfter != catchUp {
		result.Priority = new(int)
	}
	return result, err
}

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// machinesOfNodes enqueues the machine of each Node that has changed, before machines of which nothing is told. Nodes that
// are listed when the service starts have not changed.
func machinesOfNodes(now func() time.Time) handler.TypedFuncs[*corev1.Node, reconcile.Request] {
	turns := &turns{now: now}
	enqueue := func(node *corev1.Node, queue requestQueue, initial bool) {
		id := machineOf(node)
		if id == "" {
			return
		}
		priority := handler.LowPriority
		if !initial {
			priority = turns.priority(id)
		}
		if first, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			first.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request(id))
			return
		}
		queue.Add(request(id))
	}
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], queue requestQueue) {
			enqueue(e.Object, queue, e.IsInInitialList)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], queue requestQueue) {
			enqueue(e.ObjectNew, queue, false)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Node], queue requestQueue) {
			enqueue(e.Object, queue, false)
			turns.forget(machineOf(e.Object))
		},
	}
}
