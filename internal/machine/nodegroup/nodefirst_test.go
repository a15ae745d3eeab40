// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A machine whose Node has changed is looked at before machines that are still to be launched, however many these are, and
// also if it waited among them. A machine whose Node was listed when the service started waits behind them.
func TestMachinesOfNodes(t *testing.T) {
	node := func(n int) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", n)}, Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///us-east-1a/i-%017d", n)}}
	}
	queue := priorityqueue.New[reconcile.Request]("machines-of-nodes")
	defer queue.ShutDown()
	nodes := machinesOfNodes(time.Now)
	nodes.Create(t.Context(), event.TypedCreateEvent[*corev1.Node]{Object: node(0), IsInInitialList: true}, queue)
	for n := 1; n <= 3; n++ {
		queue.Add(request(machineOf(node(n))))
	}
	nodes.Update(t.Context(), event.TypedUpdateEvent[*corev1.Node]{ObjectOld: node(2), ObjectNew: node(2)}, queue)
	nodes.Create(t.Context(), event.TypedCreateEvent[*corev1.Node]{Object: node(4)}, queue)
	nodes.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Node]{Object: node(5)}, queue)
	nodes.Update(t.Context(), event.TypedUpdateEvent[*corev1.Node]{ObjectOld: &corev1.Node{}, ObjectNew: &corev1.Node{}}, queue) // no machine's
	for _, want := range []int{2, 4, 5, 1, 3, 0} {
		is, _ := queue.Get()
		if is.Name != machineOf(node(want)) {
			t.Fatalf("it is %s, want machine %d", is.Name, want)
		}
		queue.Done(is)
	}
	if left := queue.Len(); left > 0 {
		t.Errorf("%d are left", left)
	}
}

// A Node that changes as soon as its machine was looked at, as that of a hostile kubelet, keeps no other machine waiting. After
// a while its machine comes first again, as it does when the Node is another one.
func TestANodeThatChangesWithoutEnd(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-00000000000000001"}}
	now := time.Unix(1800000000, 0)
	nodes := machinesOfNodes(func() time.Time { return now })
	queue := priorityqueue.New[reconcile.Request]("node-that-changes")
	defer queue.ShutDown()
	change := func() {
		nodes.Update(t.Context(), event.TypedUpdateEvent[*corev1.Node]{ObjectOld: node, ObjectNew: node}, queue)
	}
	other := request("i-00000000000000002")
	// before is how often the Node's machine is looked at before the other one.
	before := func() (n int) {
		t.Helper()
		queue.Add(other)
		for change(); ; n++ {
			is, _ := queue.Get()
			queue.Done(is)
			if is == other {
				return n
			}
			if n > 100 {
				t.Fatal("the other machine is never looked at")
			}
			change()
		}
	}
	if n := before(); n != nodeFirstBurst {
		t.Errorf("it comes first %d times, want %d", n, nodeFirstBurst)
	}
	empty := func() {
		for queue.Len() > 0 {
			is, _ := queue.Get()
			queue.Done(is)
		}
	}
	empty()
	if n := before(); n != 0 {
		t.Errorf("it comes first %d times more", n)
	}
	empty()
	now = now.Add(2 * nodeFirstEvery)
	if n := before(); n != 2 {
		t.Errorf("after %v it comes first %d times, want 2", 2*nodeFirstEvery, n)
	}
	empty()
	nodes.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Node]{Object: node}, queue)
	empty()
	if n := before(); n != nodeFirstBurst {
		t.Errorf("another Node comes first %d times, want %d", n, nodeFirstBurst)
	}
}

// A machine that is looked at again of itself does not come first any more, but for a cache that was behind.
func TestPriorityOfAMachineThatIsLookedAtAgain(t *testing.T) {
	for _, c := range []struct {
		result reconcile.Result
		err    error
		keeps  bool
	}{
		{result: reconcile.Result{RequeueAfter: routesAgain}},
		{result: reconcile.Result{}},
		{err: errors.New("no")},
		{result: reconcile.Result{RequeueAfter: catchUp}, keeps: true},
	} {
		inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return c.result, c.err })
		is, err := inTurn{inner}.Reconcile(t.Context(), request("i-00000000000000001"))
		if !errors.Is(err, c.err) || is.RequeueAfter != c.result.RequeueAfter || (is.Priority == nil) != c.keeps || is.Priority != nil && *is.Priority != 0 {
			t.Errorf("%+v, %v of %+v, %v", is, err, c.result, c.err)
		}
	}
}
