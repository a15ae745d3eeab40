// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
)

// clusterSubnets returns the subnets that a request asks for. An empty list means the subnets of the default VPC, which
// is not part of EKS's API.
func (a *API) clusterSubnets(ctx context.Context, ids []string) ([]v1alpha1.SubnetID, error) {
	kept, _, zones, err := vpcconfig.Subnets(ctx, a.store.Management, ids)
	if err == nil && len(ids) > 0 && zones < 2 {
		return nil, awsfault.Errorf(eksfault.InvalidParameter, "Subnets specified must be in at least two different AZs")
	}
	return kept, err
}

// checkSecurityGroups refuses groups that a cluster in some subnets cannot have. Without subnets it is in the default
// VPC.
func (a *API) checkSecurityGroups(ctx context.Context, subnets, ids []string) error {
	if len(ids) > v1alpha1.MaxClusterSecurityGroups {
		return awsfault.Errorf(eksfault.InvalidParameter, "A cluster has %d securityGroupIds at most, not %d", v1alpha1.MaxClusterSecurityGroups, len(ids))
	}
	if len(ids) == 0 {
		return nil
	}
	_, vpc, _, err := vpcconfig.Subnets(ctx, a.store.Management, subnets)
	if err != nil {
		return err
	}
	return vpcconfig.CheckGroups(ctx, a.store.Management, vpc, ids)
}
