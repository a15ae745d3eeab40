// SPDX-License-Identifier: Apache-2.0

package scalingcontroller

import (
	"cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/scalingplan"
)

// wanted is what new instances of a group are.
type wanted struct {
	launch *v1alpha1.LaunchTemplateReference
	mixed  *v1alpha1.MixedInstancesPolicy
}

// wantedOf is what the group says, or what its refresh does while it goes on.
func wantedOf(g *v1alpha1.AutoScalingGroup) wanted {
	if r := g.Spec.Refresh; r != nil && r.Ended == "" && (r.LaunchTemplate != nil || r.MixedInstancesPolicy != nil) {
		if s := statusOf(g, r.ID); s == nil || s.Status == v1alpha1.RefreshInProgress || s.Status == v1alpha1.RefreshPending {
			return wanted{r.LaunchTemplate, r.MixedInstancesPolicy}
		}
	}
	return wanted{g.Spec.LaunchTemplate, g.Spec.MixedInstancesPolicy}
}

// template is the one of all types that have no other.
func (w wanted) template() v1alpha1.LaunchTemplateReference {
	switch {
	case w.mixed != nil:
		return w.mixed.LaunchTemplate
	case w.launch != nil:
		return *w.launch
	}
	return v1alpha1.LaunchTemplateReference{}
}

// templateOf is the template of an instance type.
func (w wanted) templateOf(kind string) v1alpha1.LaunchTemplateReference {
	if w.mixed != nil {
		for _, o := range w.mixed.Overrides {
			if o.InstanceType == kind && o.LaunchTemplate != nil {
				return *o.LaunchTemplate
			}
		}
	}
	return w.template()
}

// typesOf are those of new instances, by priority. The type of the template itself has no name here.
func typesOf(w wanted) []scalingplan.Type {
	if w.mixed == nil || len(w.mixed.Overrides) == 0 {
		return []scalingplan.Type{{Weight: 1}}
	}
	var all []scalingplan.Type
	for _, o := range w.mixed.Overrides {
		all = append(all, scalingplan.Type{Name: o.InstanceType, Weight: int(cmp.Or(o.WeightedCapacity, 1))})
	}
	return all
}

// weightOf is what an instance of a type counts that the group did not launch.
func weightOf(spec v1alpha1.AutoScalingGroupSpec, kind string) int32 {
	if spec.MixedInstancesPolicy != nil {
		for _, o := range spec.MixedInstancesPolicy.Overrides {
			if o.InstanceType == kind {
				return cmp.Or(o.WeightedCapacity, 1)
			}
		}
	}
	return 1
}
