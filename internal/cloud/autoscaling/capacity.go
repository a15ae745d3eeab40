// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"strconv"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

type setDesiredCapacityInput struct {
	AutoScalingGroupName string
	DesiredCapacity      int32
	// HonorCooldown waits for an earlier change to settle. Groups here have no time in which they may not be changed.
	HonorCooldown bool
}

func (a *api) setDesiredCapacity() awsfront.Spec[setDesiredCapacityInput, struct{}] {
	return awsfront.Spec[setDesiredCapacityInput, struct{}]{
		About: aboutGroup(a, func(in *setDesiredCapacityInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *setDesiredCapacityInput) (*struct{}, error) {
			return nil, a.change(ctx, in.AutoScalingGroupName, func(_ *group, spec *v1alpha1.NodeGroupSpec) error {
				s := &spec.ScalingConfig
				switch {
				case in.DesiredCapacity > s.MaxSize:
					return awsfault.Errorf(invalid, "New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", in.DesiredCapacity, s.MaxSize)
				case in.DesiredCapacity < s.MinSize:
					return awsfault.Errorf(invalid, "New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", in.DesiredCapacity, s.MinSize)
				}
				s.DesiredSize = in.DesiredCapacity
				return nil
			})
		},
	}
}

// updateGroupInput has what can be changed of a group that is a node group's. The rest is the node group's, and refused
// by the front.
type updateGroupInput struct {
	AutoScalingGroupName                                     string
	MinSize, MaxSize, DesiredCapacity                        *int32
	DefaultCooldown, HealthCheckGracePeriod                  *int32
	NewInstancesProtectedFromScaleIn                         *bool
	HealthCheckType, VPCZoneIdentifier, ServiceLinkedRoleARN string
	CapacityRebalance                                        *bool
}

func (a *api) updateGroup() awsfront.Spec[updateGroupInput, struct{}] {
	return awsfront.Spec[updateGroupInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateGroupInput) ([]awsfront.Target, error) {
			targets, err := a.about(ctx, call, in.AutoScalingGroupName)
			if err != nil {
				return nil, err
			}
			for key, size := range map[string]*int32{"autoscaling:MinSize": in.MinSize, "autoscaling:MaxSize": in.MaxSize} {
				if size != nil {
					targets[0].Conditions[key] = []string{strconv.Itoa(int(*size))}
				}
			}
			return targets, nil
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *updateGroupInput) (*struct{}, error) {
			zones, err := a.zones(ctx)
			if err != nil {
				return nil, err
			}
			return nil, a.change(ctx, in.AutoScalingGroupName, func(g *group, spec *v1alpha1.NodeGroupSpec) error {
				if err := in.same(a.show(call, g, zones)); err != nil {
					return err
				}
				if in.NewInstancesProtectedFromScaleIn != nil && *in.NewInstancesProtectedFromScaleIn != spec.ScalingGroup().ProtectNewMachines {
					scaling(spec).ProtectNewMachines = *in.NewInstancesProtectedFromScaleIn
				}
				sizes, err := in.sizes(spec.ScalingConfig)
				spec.ScalingConfig = sizes
				return err
			})
		},
	}
}

// same refuses what the node group decides, if it is to be another than it is.
func (in *updateGroupInput) same(is shownGroup) error {
	for _, m := range []struct{ name, wanted, is string }{
		{"HealthCheckType", in.HealthCheckType, is.HealthCheckType},
		{"VPCZoneIdentifier", in.VPCZoneIdentifier, is.VPCZoneIdentifier},
		{"ServiceLinkedRoleARN", in.ServiceLinkedRoleARN, is.ServiceLinkedRoleARN},
		{"DefaultCooldown", number(in.DefaultCooldown), number(&is.DefaultCooldown)},
		{"HealthCheckGracePeriod", number(in.HealthCheckGracePeriod), number(&is.HealthCheckGracePeriod)},
		{"CapacityRebalance", flag(in.CapacityRebalance), flag(&is.CapacityRebalance)},
	} {
		if m.wanted != "" && m.wanted != m.is {
			return awsfault.Errorf(invalid, "The group %s is that of an EKS node group, which decides about %s: it is %q and cannot be %.200q", is.AutoScalingGroupName, m.name, m.is, m.wanted)
		}
	}
	return nil
}

func number(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

func flag(on *bool) string {
	if on == nil {
		return ""
	}
	return strconv.FormatBool(*on)
}

// sizes are those of the group after the change. A desired capacity that is not named stays between the bounds.
func (in *updateGroupInput) sizes(s v1alpha1.ScalingConfig) (v1alpha1.ScalingConfig, error) {
	if in.MinSize != nil {
		s.MinSize = *in.MinSize
	}
	if in.MaxSize != nil {
		s.MaxSize = *in.MaxSize
	}
	switch {
	case s.MinSize < 0 || s.MaxSize < 0:
		return s, awsfault.Errorf(invalid, "Min bound, %d, and max bound, %d, must be at least 0", s.MinSize, s.MaxSize)
	case s.MinSize > s.MaxSize:
		return s, awsfault.Errorf(invalid, "Min bound, %d, must be less than or equal to max bound, %d", s.MinSize, s.MaxSize)
	}
	if in.DesiredCapacity == nil {
		s.DesiredSize = min(max(s.DesiredSize, s.MinSize), s.MaxSize)
		return s, nil
	}
	s.DesiredSize = *in.DesiredCapacity
	if s.DesiredSize < s.MinSize || s.DesiredSize > s.MaxSize {
		return s, awsfault.Errorf(invalid, "Desired capacity:%d must be between the specified min size:%d and max size:%d", s.DesiredSize, s.MinSize, s.MaxSize)
	}
	return s, nil
}
