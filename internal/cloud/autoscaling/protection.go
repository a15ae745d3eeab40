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

type setInstanceProtectionInput struct {
	AutoScalingGroupName string
	InstanceIDs          []string
	ProtectedFromScaleIn bool
}

func setInstanceProtection(a *api) awsfront.Spec[setInstanceProtectionInput, struct{}] {
	return awsfront.Spec[setInstanceProtectionInput, struct{}]{
		About: aboutGroup(a, func(in *setInstanceProtectionInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *setInstanceProtectionInput) (*struct{}, error) {
			g, err := a.group(ctx, in.AutoScalingGroupName)
			if err != nil {
				return nil, err
			}
			var chosen []*v1alpha1.Machine
			for _, id := range in.InstanceIDs {
				at := slices.IndexFunc(g.machines, func(m *v1alpha1.Machine) bool { return m.Name == id })
				switch {
				case at < 0:
					return nil, awsfault.Errorf(invalid, "The instance %.64s is not part of Auto Scaling group %s.", id, g.name)
				case !g.machines[at].DeletionTimestamp.IsZero(), g.machines[at].Spec.WarmPool != "":
					return nil, awsfault.Errorf(invalid, "The instance %s is not in InService or EnteringStandby or Standby.", id)
				}
				chosen = append(chosen, g.machines[at])
			}
			for _, m := range chosen {
				before := m.DeepCopy()
				m.Spec.ProtectedFromScaleIn = in.ProtectedFromScaleIn
				if err := a.Management.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
					return nil, away(fmt.Errorf("protecting machine %s: %w", m.Name, err))
				}
			}
			return nil, nil //nolint:nilnil // the answer has no members
		},
	}
}
