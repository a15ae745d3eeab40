// SPDX-License-Identifier: Apache-2.0

package nodegroupspec

import (
	"maps"
	"slices"

	"muster.dev/muster/api/v1alpha1"
)

// Change sets in the spec of a node group what an update asks for. It shares nothing with what the spec had before.
func Change(s *v1alpha1.NodeGroupSpec, change v1alpha1.UpdateChange) {
	if change.Scaling != nil {
		for _, size := range []struct{ from, into *int32 }{
			{change.Scaling.MinSize, &s.ScalingConfig.MinSize},
			{change.Scaling.MaxSize, &s.ScalingConfig.MaxSize},
			{change.Scaling.DesiredSize, &s.ScalingConfig.DesiredSize},
		} {
			if size.from != nil {
				*size.into = *size.from
			}
		}
	}
	if change.UpdateConfig != nil {
		s.EKS.UpdateConfig = *change.UpdateConfig
	}
	if change.NodeRepairConfig != nil {
		s.EKS.NodeRepairConfig, s.EKS.NodeRepairEnabled = change.NodeRepairConfig.DeepCopy(), nil
	}
	if change.WarmPool != nil {
		s.WarmPool = change.WarmPool.Pool.DeepCopy()
	}
	if change.Labels != nil {
		labels := v1alpha1.NodeLabels{}
		maps.Copy(labels, s.Labels)
		maps.Copy(labels, change.Labels.Set)
		for _, key := range change.Labels.Remove {
			delete(labels, key)
		}
		s.Labels = labels
	}
	if change.Taints != nil {
		var taints v1alpha1.NodeTaints
		for _, t := range s.Taints {
			if !hasTaint(change.Taints.Set, t) && !hasTaint(change.Taints.Remove, t) {
				taints = append(taints, t)
			}
		}
		s.Taints = slices.Concat(taints, change.Taints.Set)
	}
}

// hasTaint reports whether there is a taint of the same key and effect, whatever its value.
func hasTaint(taints v1alpha1.NodeTaints, t v1alpha1.NodeTaint) bool {
	return slices.ContainsFunc(taints, func(o v1alpha1.NodeTaint) bool { return o.Key == t.Key && o.Effect == t.Effect })
}
