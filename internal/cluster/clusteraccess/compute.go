// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/nodegroup"
)

// computeRoles adds the ids of the roles of machines that control planes launch.
func (n *NodeRoles) computeRoles(ctx context.Context, roles map[string]bool) error {
	var clusters v1alpha1.ClusterList
	if err := n.management.List(ctx, &clusters); err != nil {
		return fmt.Errorf("listing Clusters for the roles of machines that control planes launch: %w", err)
	}
	for i := range clusters.Items {
		if !clusters.Items[i].Spec.Compute.On() {
			continue
		}
		role, err := n.role(ctx, clusters.Items[i].ComputeRole())
		if err == nil {
			roles[role.Spec.RoleID] = true
		} else if _, gone := errors.AsType[*nodegroup.RoleProblem](err); !gone {
			return err
		}
	}
	return nil
}
