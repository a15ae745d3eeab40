// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"slices"
	"strconv"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/scalingplan"
)

func updateGroup(a *api) awsfront.Spec[settings, struct{}] {
	return awsfront.Spec[settings, struct{}]{
		About: a.aboutSettings,
		Do: func(ctx context.Context, call *awsfront.Call, in *settings) (*struct{}, error) {
			zones, err := a.zones(ctx)
			if err != nil {
				return nil, err
			}
			return nil, a.change(ctx, in.AutoScalingGroupName, func(g *group) error {
				if g.own != nil {
					return a.settle(ctx, call, g, in)
				}
				if err := in.same(a.show(call, g, zones)); err != nil {
					return err
				}
				if on := in.NewInstancesProtectedFromScaleIn; on != nil && *on != g.kept().ProtectNewMachines {
					g.scaling().ProtectNewMachines = *on
				}
				before := g.sizes()
				sizes, err := before.Change(in.MinSize, in.MaxSize, in.DesiredCapacity)
				if err != nil {
					return awsfault.Errorf(invalid, "%s", err.Error())
				}
				g.setSizes(sizes, scalingplan.Constraints(call.Now, "user request", before, sizes))
				return nil
			})
		},
	}
}

// same refuses what the node group decides, if it is to be another than it is.
func (in *settings) same(is shownGroup) error {
	for _, m := range []struct{ name, wanted, is string }{
		{"HealthCheckType", in.HealthCheckType, is.HealthCheckType},
		{"VPCZoneIdentifier", in.VPCZoneIdentifier, is.VPCZoneIdentifier},
		{"ServiceLinkedRoleARN", in.ServiceLinkedRoleARN, is.ServiceLinkedRoleARN},
		{"DefaultCooldown", number(in.DefaultCooldown), number(&is.DefaultCooldown)},
		{"HealthCheckGracePeriod", number(in.HealthCheckGracePeriod), number(&is.HealthCheckGracePeriod)},
		{"DefaultInstanceWarmup", number(in.DefaultInstanceWarmup), ""},
		{"CapacityRebalance", flag(in.CapacityRebalance), flag(&is.CapacityRebalance)},
	} {
		if m.wanted != "" && m.wanted != m.is {
			return decided(is.AutoScalingGroupName, m.name, m.is, m.wanted)
		}
	}
	switch err := in.AvailabilityZoneDistribution.check(); {
	case err != nil:
		return err
	case in.LaunchTemplate != nil || in.MixedInstancesPolicy != nil:
		return awsfault.Errorf(invalid, "The group %s is that of an EKS node group, which decides about its launch template: use UpdateNodegroupVersion", is.AutoScalingGroupName)
	case len(in.TerminationPolicies) > 0 && !slices.Equal(in.TerminationPolicies, is.TerminationPolicies):
		return awsfault.Errorf(invalid, "The group %s is that of an EKS node group, which decides about TerminationPolicies: it has %q", is.AutoScalingGroupName, is.TerminationPolicies)
	case len(in.AvailabilityZones) > 0:
		return awsfault.Errorf(invalid, "The group %s is that of an EKS node group, which decides about AvailabilityZones: it has %q", is.AutoScalingGroupName, is.AvailabilityZones)
	}
	return nil
}

func decided(group, member, is, wanted string) *awsfault.Error {
	return awsfault.Errorf(invalid, "The group %s is that of an EKS node group, which decides about %s: it is %q and cannot be %.200q", group, member, is, wanted)
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
