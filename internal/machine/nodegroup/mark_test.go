// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/nodegroupspec"
)

// marked is a world with a machine of a group that has joined, and somebody's own label and taint on its Node.
func marked(t *testing.T) (*world, *machines) {
	t.Helper()
	group, m, node := newTestGroup(1), newTestMachine(), newTestNode(corev1.ConditionTrue)
	m.Spec.Labels, m.Spec.Taints = group.Spec.Labels, group.Spec.Taints
	node.Labels = withManaged(map[string]string{"team": "blue", "mine": "x"})
	node.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "mine", Effect: "NoExecute"}}
	w := newWorld(t, group, m, node, newTestCluster())
	r := w.machines()
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	if writes := w.faults.calls["cluster patch *v1.Node"]; writes != 0 || w.machine(t).Status.Node != nil {
		t.Fatalf("a Node that has what it is to have is written %d times", writes)
	}
	return w, r
}

// withManaged adds the labels of EKS that a Node of the group's registers with.
func withManaged(labels map[string]string) map[string]string {
	maps.Copy(labels, nodegroupspec.ManagedLabels(newTestMachine(), ami.OfMachine(&v1alpha1.Machine{})))
	return labels
}

// A Node of an earlier version has none of EKS's labels. It gets those that it lacks, once, and one that somebody has
// set stays.
func TestANodeOfAnEarlierVersionIsLabelled(t *testing.T) {
	node := newTestNode(corev1.ConditionTrue)
	node.Labels = map[string]string{"eks.amazonaws.com/capacityType": "mine"}
	w := newWorld(t, newTestGroup(1), newTestMachine(), node, newTestCluster())
	r := w.machines()
	for range 4 {
		mustReconcile(t, r, id)
	}
	w.get(t, w.cluster, node, nodeName)
	want := withManaged(map[string]string{"team": "blue"})
	want["eks.amazonaws.com/capacityType"] = "mine"
	if diff := cmp.Diff(want, node.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	writes := w.faults.calls["cluster patch *v1.Node"]
	mustReconcile(t, r, id)
	if again := w.faults.calls["cluster patch *v1.Node"]; again != writes {
		t.Error("a Node that has its labels is written again")
	}
}

// asks changes what the group asks of its nodes.
func (w *world) asks(t *testing.T, labels v1alpha1.NodeLabels, taints v1alpha1.NodeTaints) {
	t.Helper()
	group := &v1alpha1.NodeGroup{}
	w.get(t, w.management, group, "workers")
	group.Spec.Labels, group.Spec.Taints = labels, taints
	if err := w.faults.off(func() error { return w.management.Update(t.Context(), group) }); err != nil {
		t.Fatal(err)
	}
}

// has compares the Node, and what the group says of it.
func (w *world) has(t *testing.T, labels map[string]string, taints ...string) {
	t.Helper()
	node, group := &corev1.Node{}, &v1alpha1.NodeGroup{}
	w.get(t, w.cluster, node, nodeName)
	var got []string
	for _, taint := range node.Spec.Taints {
		got = append(got, taint.ToString())
	}
	slices.Sort(got)
	if diff := cmp.Diff(withManaged(labels), node.Labels) + cmp.Diff(taints, got); diff != "" {
		t.Error(diff)
	}
	mustReconcile(t, w.groups(), "workers")
	if w.get(t, w.management, group, "workers"); group.Status.UpdatedReplicas != 1 {
		t.Errorf("status %+v", group.Status)
	}
}

var (
	newLabels = v1alpha1.NodeLabels{"tier": "gold"}
	newTaints = v1alpha1.NodeTaints{{Key: "b", Value: "1", Effect: "NoExecute"}}
)

func TestLabelsAndTaintsOfARunningNode(t *testing.T) {
	w, r := marked(t)
	w.asks(t, newLabels, newTaints)
	group := &v1alpha1.NodeGroup{}
	mustReconcile(t, w.groups(), "workers")
	if w.get(t, w.management, group, "workers"); group.Status.UpdatedReplicas != 0 {
		t.Errorf("before anything was done: %+v", group.Status)
	}
	if again := mustReconcile(t, r, id).RequeueAfter; again != catchUp {
		t.Errorf("the next step comes after %v", again)
	}
	mustReconcile(t, r, id)
	w.has(t, map[string]string{"tier": "gold", "mine": "x"}, "b=1:NoExecute", "mine:NoExecute")
	writes := w.faults.calls["cluster patch *v1.Node"]
	mustReconcile(t, r, id)
	if again := w.faults.calls["cluster patch *v1.Node"]; again != writes {
		t.Error("a Node that has all of it is written again")
	}
	// Back again, and only what the group put there goes.
	w.asks(t, nil, nil)
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	w.has(t, map[string]string{"mine": "x"}, "mine:NoExecute")
}

// A service that is killed between any two steps is followed by one that ends the work, also if the group has changed
// once more meanwhile.
func TestMarkingIsKilled(t *testing.T) {
	for _, call := range []string{"cluster patch *v1.Node", "management update status *v1alpha1.Machine"} {
		for nth := 1; nth <= 2; nth++ {
			w, r := marked(t)
			w.asks(t, newLabels, newTaints)
			w.faults.fail(call, nth)
			killed := 0
			for range 8 {
				if _, err := reconcileOnce(t, r, id); err != nil {
					if !errors.Is(err, errTest) {
						t.Fatal(err)
					}
					killed++
					w.asks(t, v1alpha1.NodeLabels{"tier": "iron"}, nil)
					r = w.machines()
				}
			}
			if killed == 0 && nth == 1 {
				t.Errorf("%s does not happen", call)
			}
			if killed == 1 {
				w.has(t, map[string]string{"tier": "iron", "mine": "x"}, "mine:NoExecute")
			}
		}
	}
}

// A Node that registers anew has what its machine was launched with, and is brought up to date.
func TestANodeThatRegistersAnew(t *testing.T) {
	w, r := marked(t)
	w.asks(t, newLabels, newTaints)
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	node := newTestNode(corev1.ConditionTrue)
	if err := w.cluster.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node = newTestNode(corev1.ConditionTrue)
	node.UID, node.Labels, node.Spec.Taints = "another", withManaged(map[string]string{"team": "blue"}), []corev1.Taint{{Key: "a", Effect: "NoSchedule"}}
	if err := w.cluster.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	w.has(t, map[string]string{"tier": "gold"}, "b=1:NoExecute")
}

func TestAMachineWhoseGroupIsGone(t *testing.T) {
	w, r := joined(t)
	mustReconcile(t, r, id)
	if writes := w.faults.calls["cluster patch *v1.Node"]; writes != 0 {
		t.Errorf("its Node is written %d times", writes)
	}
}
