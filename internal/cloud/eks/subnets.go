// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
)

// subnets reads the subnets of a request, which are of one VPC.
func (a *api) subnets(ctx context.Context, ids []string) (kept []v1alpha1.SubnetID, vpc string, zones int, err error) {
	in := map[string]bool{}
	seen := map[string]bool{}
	for _, id := range ids {
		subnet := &v1alpha1.Subnet{}
		err := a.Management.Get(ctx, client.ObjectKey{Name: id}, subnet)
		switch {
		case apierrors.IsNotFound(err):
			return nil, "", 0, awsfault.Errorf(invalidParameter, "The subnet ID '%.100s' does not exist", id)
		case err != nil:
			return nil, "", 0, away(fmt.Errorf("reading subnet %.100s: %w", id, err))
		case seen[id]:
			return nil, "", 0, awsfault.Errorf(invalidParameter, "The subnet ID '%s' is there twice", id)
		case vpc != "" && subnet.Spec.VPCID != vpc:
			return nil, "", 0, awsfault.Errorf(invalidParameter, "Subnets provided must be from same VPC: %s is in %s, and those before it in %s", id, subnet.Spec.VPCID, vpc)
		}
		seen[id], in[subnet.Spec.AvailabilityZone], vpc = true, true, subnet.Spec.VPCID
		kept = append(kept, v1alpha1.SubnetID(id))
	}
	return kept, vpc, len(in), nil
}

// clusterSubnets returns the subnets that a request asks for. An empty list means the subnets of the default VPC, which is not part of EKS's API.
func (a *api) clusterSubnets(ctx context.Context, ids []string) ([]v1alpha1.SubnetID, error) {
	kept, _, zones, err := a.subnets(ctx, ids)
	if err == nil && len(ids) > 0 && zones < 2 {
		return nil, awsfault.Errorf(invalidParameter, "Subnets specified must be in at least two different AZs")
	}
	return kept, err
}

// checkSecurityGroups refuses groups that a cluster in some subnets cannot have. Without subnets it is in the default VPC.
func (a *api) checkSecurityGroups(ctx context.Context, subnets, ids []string) error {
	if len(ids) > v1alpha1.MaxClusterSecurityGroups {
		return awsfault.Errorf(invalidParameter, "A cluster has %d securityGroupIds at most, not %d", v1alpha1.MaxClusterSecurityGroups, len(ids))
	}
	if len(ids) == 0 {
		return nil
	}
	_, vpc, _, err := a.subnets(ctx, subnets)
	if err != nil {
		return err
	}
	return a.groupsThere(ctx, vpc, ids)
}

// groupsThere refuses security groups that are not there, are not in the VPC, or are named twice. An empty VPC is one that is not known yet.
func (a *api) groupsThere(ctx context.Context, vpc string, ids []string) error {
	for i, id := range ids {
		var group v1alpha1.SecurityGroup
		err := a.Management.Get(ctx, client.ObjectKey{Name: id}, &group)
		switch {
		case apierrors.IsNotFound(err), err == nil && !group.DeletionTimestamp.IsZero():
			return awsfault.Errorf(invalidParameter, "The security group '%.100s' does not exist", id)
		case err != nil:
			return away(fmt.Errorf("reading security group %.100s: %w", id, err))
		case vpc != "" && group.Spec.VPCID != vpc:
			return awsfault.Errorf(invalidParameter, "Security group(s) [%s] are not in the same VPC as the subnets: %s is in %s, not in %s", id, id, group.Spec.VPCID, vpc)
		case slices.Contains(ids[:i], id):
			return awsfault.Errorf(invalidParameter, "The security group '%s' is there twice", id)
		}
	}
	return nil
}

// nodegroupSubnets are those that machines of a cluster are to be in.
func (a *api) nodegroupSubnets(ctx context.Context, of *v1alpha1.Cluster, ids []string) ([]v1alpha1.SubnetID, error) {
	kept, vpc, _, err := a.subnets(ctx, ids)
	if err == nil && len(ids) > 0 && vpc != of.Status.VPCID {
		return nil, awsfault.Errorf(invalidParameter, "The subnets %v are in %s, and the cluster is in %s: a node group's subnets must be of the cluster's VPC", ids, vpc, of.Status.VPCID)
	}
	return kept, err
}

// shownSubnets are the first of some lists that is not empty.
func shownSubnets(lists ...[]v1alpha1.SubnetID) []string {
	shown := []string{}
	for _, list := range lists {
		if len(list) == 0 {
			continue
		}
		for _, id := range list {
			shown = append(shown, string(id))
		}
		break
	}
	return shown
}
