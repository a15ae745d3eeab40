// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

type attachInput struct {
	AutoScalingGroupName string
	InstanceIDs          []string
}

func attachInstances(a *api) awsfront.Spec[attachInput, struct{}] {
	return awsfront.Spec[attachInput, struct{}]{
		About: aboutGroup(a, func(in *attachInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, call *awsfront.Call, in *attachInput) (*struct{}, error) {
			zones, err := a.zones(ctx)
			if err != nil {
				return nil, err
			}
			return nil, a.changeOwn(ctx, in.AutoScalingGroupName, "a node group takes only machines that it launched", func(g *group) error {
				ids, err := given(in.InstanceIDs)
				if err != nil {
					return err
				}
				if err := a.dropUnattached(ctx, g, ids); err != nil {
					return err
				}
				weight := int32(0)
				for _, id := range ids {
					if w := g.wish(id); w != nil && w.Wish == v1alpha1.WishAttached && g.instance(id) == nil {
						continue // the request was sent before
					}
					m := &v1alpha1.Machine{}
					if err := a.Management.Get(ctx, client.ObjectKey{Name: id}, m); client.IgnoreNotFound(err) != nil {
						return away(fmt.Errorf("reading instance %.64s: %w", id, err))
					} else if err != nil {
						return awsfault.Errorf(invalid, "Invalid Instance ID(s): [%.64s]. The instance does not exist", id)
					}
					if err := g.attachable(m, zones); err != nil {
						return err
					}
					weight += g.weightOf(m.Spec.Type())
					g.ask(id, v1alpha1.WishAttached, fmt.Sprintf("%s an instance was attached in response to a user request, increasing the capacity to %d.", at(call.Now), g.sizes().Desired+weight))
				}
				return g.more(weight, "Attaching instances")
			})
		},
	}
}

// dropUnattached drops wishes to attach instances that ended, or became members of another group, before they were attached,
// but for those of a request.
func (a *api) dropUnattached(ctx context.Context, g *group, but []string) error {
	var left []v1alpha1.InstanceWish
	for _, w := range g.own.Spec.Wishes {
		if w.Wish == v1alpha1.WishAttached && g.instance(w.InstanceID) == nil && !slices.Contains(but, w.InstanceID) {
			m := &v1alpha1.Machine{}
			err := a.Management.Get(ctx, client.ObjectKey{Name: w.InstanceID}, m)
			if client.IgnoreNotFound(err) != nil {
				return away(fmt.Errorf("reading instance %.64s: %w", w.InstanceID, err))
			}
			name, _ := memberOf(m)
			if err != nil || name != "" && !g.has(m) {
				continue
			}
		}
		left = append(left, w)
	}
	g.own.Spec.Wishes = left
	return nil
}

// weightOf is what an instance of a type counts.
func (g *group) weightOf(kind string) int32 {
	if p := g.own.Spec.MixedInstancesPolicy; p != nil {
		for _, o := range p.Overrides {
			if o.InstanceType == kind && o.WeightedCapacity > 0 {
				return o.WeightedCapacity
			}
		}
	}
	return 1
}

// attachable refuses an instance that the group cannot take in.
func (g *group) attachable(m *v1alpha1.Machine, zones map[string]string) error {
	var own []string
	for _, id := range g.subnets() {
		own = append(own, zones[id])
	}
	name, _ := memberOf(m)
	switch {
	case name != "":
		return awsfault.Errorf(invalid, "Instance %s is already a member of AutoScalingGroup %s: an instance is of one group", m.Name, name)
	case !m.DeletionTimestamp.IsZero() || m.Status.ProviderID == "" || m.Spec.PowerState == v1alpha1.PowerStopped:
		return awsfault.Errorf(invalid, "Instance %s is not in correct state: it must be running", m.Name)
	case !slices.Contains(own, zones[string(m.Spec.SubnetID)]):
		return awsfault.Errorf(invalid, "Instance %s is in %s, which is no availability zone of group %s: it has %q", m.Name, zones[string(m.Spec.SubnetID)], g.name, own)
	}
	return nil
}
