// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/scalingplan"
)

type setDesiredCapacityInput struct {
	AutoScalingGroupName string
	DesiredCapacity      int32
	// HonorCooldown waits for an earlier change to settle. Groups here have no time in which they may not be changed.
	HonorCooldown bool
}

func setDesiredCapacity(a *api) awsfront.Spec[setDesiredCapacityInput, struct{}] {
	return awsfront.Spec[setDesiredCapacityInput, struct{}]{
		About: aboutGroup(a, func(in *setDesiredCapacityInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, call *awsfront.Call, in *setDesiredCapacityInput) (*struct{}, error) {
			return nil, a.change(ctx, in.AutoScalingGroupName, func(g *group) error {
				s := g.sizes()
				switch {
				case in.DesiredCapacity > s.Max:
					return awsfault.Errorf(invalid, "New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", in.DesiredCapacity, s.Max)
				case in.DesiredCapacity < s.Min:
					return awsfault.Errorf(invalid, "New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", in.DesiredCapacity, s.Min)
				}
				cause := scalingplan.Explicit(call.Now, s.Desired, in.DesiredCapacity)
				s.Desired = in.DesiredCapacity
				g.setSizes(s, cause)
				return nil
			})
		},
	}
}
