// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/storage/efs"
)

// mountTargets are those of EFS's API: on AWS each has a network interface, which keeps its subnet and its security groups.
var mountTargets = awsrecord.Kind[efs.MountTarget]{Type: efs.MountTargetRecord}

// mountTargetsThat names the mount targets that match.
func (a *api) mountTargetsThat(ctx context.Context, match func(efs.MountTarget) bool) (ids []string, err error) {
	all, err := mountTargets.List(ctx, a.Management)
	if err != nil {
		return nil, away(err)
	}
	for i := range all {
		if match(all[i].Data) {
			ids = append(ids, all[i].ID)
		}
	}
	return ids, nil
}

func (a *api) mountTargetsIn(ctx context.Context, subnet *v1alpha1.Subnet) ([]string, error) {
	return a.mountTargetsThat(ctx, func(t efs.MountTarget) bool { return t.Subnet == subnet.Name })
}
