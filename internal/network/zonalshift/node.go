// SPDX-License-Identifier: Apache-2.0

package zonalshift

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// Mark brings a Node to what the shifted zones say, and reports whether that changed it: a Node that comes into a
// shifted zone is cordoned once, and one that the shift has cordoned takes pods again when it is over. A Node that a
// rollout has cordoned meanwhile stays so.
func Mark(node *corev1.Node, zones []string) bool {
	value, marked := node.Annotations[v1alpha1.AnnotationZonalShift]
	shifted := slices.Contains(zones, node.Labels[corev1.LabelTopologyZone])
	switch {
	case shifted && !marked:
		value = v1alpha1.NodeCordonedByShift
		if node.Spec.Unschedulable {
			value = v1alpha1.NodeCordonedBefore
		}
		node.Spec.Unschedulable = true
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.AnnotationZonalShift, value)
		return true
	case !shifted && marked:
		if _, rollout := node.Annotations[v1alpha1.AnnotationCordoned]; value == v1alpha1.NodeCordonedByShift && !rollout {
			node.Spec.Unschedulable = false
		}
		delete(node.Annotations, v1alpha1.AnnotationZonalShift)
		return true
	}
	return false
}
