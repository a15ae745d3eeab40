// SPDX-License-Identifier: Apache-2.0

// Package vpcconfig has the subnets and security groups that requests of EKS name, and refuses those that are not there
// or of another VPC.
package vpcconfig

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

// Subnets reads the subnets of a request, which are of one VPC, and counts their zones.
func Subnets(ctx context.Context, management client.Reader, ids []string) (kept []v1alpha1.SubnetID, vpc string, zones int, err error) {
	in := map[string]bool{}
	seen := map[string]bool{}
	for _, id := range ids {
		subnet := &v1alpha1.Subnet{}
		err := management.Get(ctx, client.ObjectKey{Name: id}, subnet)
		switch {
		case apierrors.IsNotFound(err):
			return nil, "", 0, awsfault.Errorf(eksfault.InvalidParameter, "The subnet ID '%.100s' does not exist", id)
		case err != nil:
			return nil, "", 0, eksfault.Away(fmt.Errorf("reading subnet %.100s: %w", id, err))
		case seen[id]:
			return nil, "", 0, awsfault.Errorf(eksfault.InvalidParameter, "The subnet ID '%s' is there twice", id)
		case vpc != "" && subnet.Spec.VPCID != vpc:
			return nil, "", 0, awsfault.Errorf(eksfault.InvalidParameter, "Subnets provided must be from same VPC: %s is in %s, and those before it in %s", id, subnet.Spec.VPCID, vpc)
		}
		seen[id], in[subnet.Spec.AvailabilityZone], vpc = true, true, subnet.Spec.VPCID
		kept = append(kept, v1alpha1.SubnetID(id))
	}
	return kept, vpc, len(in), nil
}

// CheckGroups refuses security groups that are not there, are not in the VPC, or are named twice. An empty VPC is one
// that is not known yet.
func CheckGroups(ctx context.Context, management client.Reader, vpc string, ids []string) error {
	for i, id := range ids {
		var group v1alpha1.SecurityGroup
		err := management.Get(ctx, client.ObjectKey{Name: id}, &group)
		switch {
		case apierrors.IsNotFound(err), err == nil && !group.DeletionTimestamp.IsZero():
			return awsfault.Errorf(eksfault.InvalidParameter, "The security group '%.100s' does not exist", id)
		case err != nil:
			return eksfault.Away(fmt.Errorf("reading security group %.100s: %w", id, err))
		case vpc != "" && group.Spec.VPCID != vpc:
			return awsfault.Errorf(eksfault.InvalidParameter, "Security group(s) [%s] are not in the same VPC as the subnets: %s is in %s, not in %s", id, id, group.Spec.VPCID, vpc)
		case slices.Contains(ids[:i], id):
			return awsfault.Errorf(eksfault.InvalidParameter, "The security group '%s' is there twice", id)
		}
	}
	return nil
}

// Shown is the first of some lists of subnets that is not empty, as EKS shows it.
func Shown(lists ...[]v1alpha1.SubnetID) []string {
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
