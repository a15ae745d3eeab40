// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

type deleteGroupInput struct {
	AutoScalingGroupName string
	ForceDelete          bool
}

func deleteGroup(a *api) awsfront.Spec[deleteGroupInput, struct{}] {
	return awsfront.Spec[deleteGroupInput, struct{}]{
		About: aboutGroup(a, func(in *deleteGroupInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteGroupInput) (*struct{}, error) {
			defer a.locks.Hold(in.AutoScalingGroupName)()
			g, err := a.ownGroup(ctx, in.AutoScalingGroupName, "delete the node group, by DeleteNodegroup")
			switch {
			case err != nil:
				return nil, err
			case g.deleting():
				return nil, nil //nolint:nilnil // the answer has no members
			case !in.ForceDelete && (len(g.own.Status.Instances) > 0 || len(g.machines) > 0 || g.own.Spec.DesiredCapacity > 0):
				return nil, awsfault.Errorf("ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group: "+
					"%s has %d, and is to have %d. Use ForceDelete to end them", g.name, len(g.own.Status.Instances), g.own.Spec.DesiredCapacity)
			}
			uid := types.UID(g.uid())
			if err := a.Management.Delete(ctx, g.own, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
				return nil, away(fmt.Errorf("deleting the group %s: %w", g.name, err))
			}
			return nil, nil //nolint:nilnil // the answer has no members
		},
	}
}
