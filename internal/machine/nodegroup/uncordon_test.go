// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/zonalshift"
)

// A rollout and a zonal shift end at the same moment: whichever is faster, the Node takes pods again.
func TestARolloutAndAZonalShiftEndTogether(t *testing.T) {
	group, m, node := newTestGroup(1), newTestMachine(), newTestNode(corev1.ConditionTrue)
	m.Spec.Labels, m.Spec.Taints, m.Spec.NodeGroupUID = group.Spec.Labels, group.Spec.Taints, group.UID
	node.Spec.Unschedulable = true
	node.Labels[corev1.LabelNodeExcludeBalancers] = "true"
	node.Annotations = map[string]string{v1alpha1.AnnotationCordoned: cordonedAndOut, v1alpha1.AnnotationZonalShift: v1alpha1.NodeCordonedByShift}
	w := newWorld(t, group, m, newTestCluster())
	r := w.machines()
	mustReconcile(t, r, id)
	if err := w.cluster.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	ended := false
	w.during("cluster patch *v1.Node", 1, func() {
		is := w.node(t)
		ended = zonalshift.Mark(is, nil)
		if err := w.cluster.Update(t.Context(), is); err != nil {
			t.Error(err)
		}
	})
	for range 3 {
		mustReconcile(t, r, id)
	}
	_, out := w.node(t).Labels[corev1.LabelNodeExcludeBalancers]
	if is := w.node(t); !ended || is.Spec.Unschedulable || out || len(is.Annotations) > 0 {
		t.Errorf("the shift has ended: %v; the Node: cordoned %v, out of balancers %v, %v", ended, is.Spec.Unschedulable, out, is.Annotations)
	}
}
