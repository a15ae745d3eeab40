// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/passrole"
)

const clusterPolicy = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"

// checkClusterRole checks the role of a request.
func (a *API) checkClusterRole(ctx context.Context, text string) error {
	return CheckRole(ctx, a.store.Management, a.store.Region, text)
}

// CheckRole refuses what EKS refuses, in its words: Terraform sends a create again that is refused with them,
// since roles and policies reach all of AWS some time after they were made.
func CheckRole(ctx context.Context, management client.Reader, region, text string) error {
	found, err := passrole.Find(ctx, management, text)
	switch {
	case err != nil:
		return err
	case found == nil:
		return awsfault.Errorf(eksfault.InvalidParameter, "The role %.300s does not exist: Error in role params", text)
	}
	return CheckFound(found, region)
}

// CheckFound is CheckRole for a role that was found.
func CheckFound(found *v1alpha1.IAMRole, region string) error {
	text := found.Spec.ARN
	switch {
	case !passrole.LetsIn(found, region, passrole.EKS, "sts:AssumeRole", nil):
		return awsfault.Errorf(eksfault.InvalidParameter, "Role with arn: %s, could not be assumed because it does not exist or the trusted entity is not correct. "+
			"Role could not be assumed because the trusted entity is not correct: its trust policy must let %s assume it", text, passrole.EKS)
	case !slices.Contains(found.Spec.AttachedPolicies, clusterPolicy):
		return awsfault.Errorf(eksfault.InvalidParameter, "The provided role doesn't have the Amazon EKS Managed Policies associated with it. "+
			"Please ensure the following policy is attached: %s", clusterPolicy)
	}
	return nil
}
