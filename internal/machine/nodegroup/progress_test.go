// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
)

// setPhase makes the first machines of the world Ready, or the rest NotReady.
func (w *world) setPhase(t *testing.T, ready int) {
	t.Helper()
	for i, m := range w.list(t) {
		m.Status.Phase = v1alpha1.MachineNotReady
		if i < ready {
			m.Status.Phase = v1alpha1.MachineReady
		}
		if err := w.management.Status().Update(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
}

// Of machines that come one after the other the group says how far they are once a second, and it is Ready at once with
// the last of them. A machine that is lost is told at once, too.
func TestProgressIsPaced(t *testing.T) {
	t.Parallel()
	const size = 20
	w := newWorld(t, newTestCluster(), newTestGroup(size))
	r := w.groups()
	mustReconcile(t, r, "workers")
	mustReconcile(t, r, "workers")
	told := map[int32]bool{}
	for ready := 1; ready < size; ready++ {
		w.now = w.now.Add(100 * time.Millisecond)
		w.setPhase(t, ready)
		result := mustReconcile(t, r, "workers")
		is := w.group(t).Status.ReadyReplicas
		told[is] = true
		if is != int32(ready) && (result.RequeueAfter <= 0 || result.RequeueAfter > progressEvery) {
			t.Errorf("%d machines are Ready, the group says %d, and is to be looked at after %v", ready, is, result.RequeueAfter)
		}
	}
	if len(told) != 2 { // at the start, and after a second
		t.Errorf("in 1.9 seconds the group said %v, want one figure a second", told)
	}
	w.setPhase(t, size)
	mustReconcile(t, r, "workers")
	wantGroup(t, w.group(t), "Ready", fmt.Sprintf("%d of %d machines are Ready", size, size))
	w.setPhase(t, size-1)
	mustReconcile(t, r, "workers")
	wantGroup(t, w.group(t), "Joining", "19 of 20 machines are Ready")
	w.setPhase(t, size-2)
	mustReconcile(t, r, "workers")
	wantGroup(t, w.group(t), "Joining", "18 of 20 machines are Ready")
}

// The changes of many machines are one look at their group. A machine that comes or goes is not a reason to wait.
func TestChangesOfMachinesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := parts{Config: Config{ClusterName: "muster"}}
		heard := p.groupOfMachine()
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		looked := 0
		take := func() {
			synctest.Wait()
			for ; queue.Len() > 0; looked++ {
				request, _ := queue.Get()
				queue.Done(request)
				if request != groupRequest("workers") {
					t.Errorf("looked at %v", request)
				}
			}
		}
		for range 500 {
			heard.Update(t.Context(), event.UpdateEvent{ObjectOld: newTestMachine(), ObjectNew: newTestMachine()}, queue)
			take()
			<-time.After(time.Millisecond)
		}
		<-time.After(together)
		if take(); looked < 1 || looked > 6 {
			t.Errorf("the group was looked at %d times in 0.6 seconds, want every %v", looked, together)
		}
		before := looked
		heard.Create(t.Context(), event.CreateEvent{Object: newTestMachine()}, queue)
		take()
		heard.Delete(t.Context(), event.DeleteEvent{Object: newTestMachine()}, queue)
		take()
		others := newTestMachine()
		others.Spec.ClusterName = "other"
		heard.Create(t.Context(), event.CreateEvent{Object: others}, queue)
		take()
		if looked != before+2 {
			t.Errorf("the group was looked at %d times more, want once for the machine that came and once as it went", looked-before)
		}
	})
}
