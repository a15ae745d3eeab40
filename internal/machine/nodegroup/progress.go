// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// progressEvery is how often it is written how many machines of a group have come so far. Hundreds may come in a few
// seconds, and nobody reads a write for each.
const progressEvery = time.Second

// together is how long changes of a group's machines are gathered: hundreds that come in are looked at together, since
// each look is at all of them.
const together = 100 * time.Millisecond

// groupOfMachine has the group that a machine names looked at. It may be gone: then the machine is an orphan.
func (p parts) groupOfMachine() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	look := func(object client.Object, queue queue, after time.Duration) {
		if m, ok := object.(*v1alpha1.Machine); ok && p.ours(m) && m.Spec.NodeGroup != "" {
			queue.AddAfter(reconcile.Request{NamespacedName: groupOf(m)}, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) { look(e.Object, queue, 0) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) { look(e.ObjectNew, queue, together) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) { look(e.Object, queue, 0) },
	}
}

// writes remembers when the status of each group was written last.
type writes struct {
	mu sync.Mutex
	at map[client.ObjectKey]time.Time
}

// wait is how long the next write about a group's progress is to wait.
func (w *writes) wait(group client.ObjectKey, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.at[group]
	if !ok {
		return 0
	}
	return max(progressEvery-now.Sub(last), 0)
}

func (w *writes) wrote(group client.ObjectKey, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == nil {
		w.at = map[client.ObjectKey]time.Time{}
	}
	w.at[group] = now
}

func (w *writes) forget(group client.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.at, group)
}

// writeStatus writes the status if it is news. Progress alone waits until the last write is progressEvery old: then the
// group is to be looked at again after the time that is returned.
func (r *groups) writeStatus(ctx context.Context, before, group *v1alpha1.NodeGroup) (time.Duration, error) {
	if equality.Semantic.DeepEqual(before.Status, group.Status) {
		return 0, nil
	}
	key, now := client.ObjectKeyFromObject(group), r.Now()
	if wait := r.writes.wait(key, now); wait > 0 && progressOnly(&before.Status, &group.Status) {
		return wait, nil
	}
	patch := client.MergeFrom(before)
	if !equality.Semantic.DeepEqual(before.Status.Rollout, group.Status.Rollout) { // machines were chosen by what it said before
		patch = lockedPatch(before)
	}
	if err := r.management.Status().Patch(ctx, group, patch); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("writing the status of the group: %w", err)
	}
	r.writes.wrote(key, now)
	return 0, nil
}

// progressOnly reports whether machines of a group that is on its way to its size were made or became Ready, and
// nothing else is new. The last of them is not progress: with it the group is Ready.
func progressOnly(was, is *v1alpha1.NodeGroupStatus) bool {
	before, now := meta.FindStatusCondition(was.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(is.Conditions, v1alpha1.ConditionReady)
	if before == nil || now == nil || now.Reason != readiness.ReasonScaling && now.Reason != readiness.ReasonJoining {
		return false
	}
	if is.Replicas < was.Replicas || is.ReadyReplicas < was.ReadyReplicas {
		return false // some are lost
	}
	same := is.DeepCopy()
	same.Replicas, same.ReadyReplicas, same.UpdatedReplicas = was.Replicas, was.ReadyReplicas, was.UpdatedReplicas
	meta.FindStatusCondition(same.Conditions, v1alpha1.ConditionReady).Message = before.Message
	return equality.Semantic.DeepEqual(*was, *same)
}
