// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"context"

	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/storage/efs"
)

// MountTargets are those of EFS's API: on AWS each has a network interface, which keeps its subnet and its security
// groups.
var MountTargets = awsrecord.Kind[efs.MountTarget]{Type: efs.MountTargetRecord}

// MountTargetsThat names the mount targets that match.
func (a *EC2) MountTargetsThat(ctx context.Context, match func(efs.MountTarget) bool) (ids []string, err error) {
	all, err := MountTargets.List(ctx, a.Management)
	if err != nil {
		return nil, Away(err)
	}
	for i := range all {
		if match(all[i].Data) {
			ids = append(ids, all[i].ID)
		}
	}
	return ids, nil
}
