// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/efs"
)

func (a *Actions) mountTargetsIn(ctx context.Context, subnet *v1alpha1.Subnet) ([]string, error) {
	return a.ec2.MountTargetsThat(ctx, func(t efs.MountTarget) bool { return t.Subnet == subnet.Name })
}
