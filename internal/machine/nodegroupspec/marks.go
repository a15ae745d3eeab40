// SPDX-License-Identifier: Apache-2.0

package nodegroupspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
)

// Marks are the labels and taints that the nodes of a group have of it.
type Marks struct {
	Labels v1alpha1.NodeLabels
	Taints v1alpha1.NodeTaints
}

// Equal reports whether nodes with the one and with the other are the same.
func (m Marks) Equal(other Marks) bool {
	if len(m.Labels) != len(other.Labels) || len(m.Taints) != len(other.Taints) {
		return false
	}
	for key, value := range m.Labels {
		if was, ok := other.Labels[key]; !ok || was != value {
			return false
		}
	}
	return !slices.ContainsFunc(m.Taints, func(t v1alpha1.NodeTaint) bool { return !slices.Contains(other.Taints, t) })
}

// Mark changes the labels and taints of a node that differ between the group's marks before and now. Labels and taints
// of others stay, also a label or taint of the group's to which somebody gave another value. The node's own slices and
// maps may be changed.
func Mark(node *corev1.Node, before, now Marks) {
	for key, value := range before.Labels {
		if _, keep := now.Labels[key]; !keep && node.Labels[key] == string(value) {
			delete(node.Labels, key)
		}
	}
	for key, value := range now.Labels {
		if was, had := before.Labels[key]; had && was == value {
			continue
		}
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels[key] = string(value)
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		own := v1alpha1.NodeTaint{Key: t.Key, Value: v1alpha1.LabelValue(t.Value), Effect: t.Effect}
		return slices.Contains(before.Taints, own) && !hasTaint(now.Taints, own)
	})
	for _, t := range now.Taints {
		if slices.Contains(before.Taints, t) {
			continue
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: t.Key, Value: string(t.Value), Effect: t.Effect})
	}
}
