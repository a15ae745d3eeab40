// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"testing"

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
	nodes := machinesOfNodes()
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
