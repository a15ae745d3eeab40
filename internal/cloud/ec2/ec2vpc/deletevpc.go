// SPDX-License-Identifier: Apache-2.0

package ec2vpc

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

type deleteVpcInput struct {
	VpcID  string
	DryRun bool
}

func (a *Actions) deleteVpc() awsfront.Spec[deleteVpcInput, struct{}] {
	return awsfront.Spec[deleteVpcInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteVpcInput) ([]awsfront.Target, error) {
			return a.ec2.About(ctx, call, ec2id.VPC, in.VpcID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteVpcInput) (*struct{}, error) {
			defer a.ec2.Locks.Hold(in.VpcID)()
			found, err := a.ec2.VPC(ctx, in.VpcID)
			if err != nil {
				return nil, err
			}
			for _, users := range a.ec2.VPCUsers {
				ids, err := users(ctx, in.VpcID)
				if err != nil {
					return nil, err
				}
				if len(ids) > 0 {
					return nil, ec2resource.Depends("vpc", in.VpcID, ids)
				}
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			if err := a.ec2.Management.Delete(ctx, found); err != nil && !apierrors.IsNotFound(err) {
				return nil, ec2resource.Away(fmt.Errorf("deleting %s: %w", in.VpcID, err))
			}
			return nil, a.sweep(ctx)
		},
	}
}

// sweep removes what went with VPCs that are gone: this time's, and those whose request was cut short.
func (a *Actions) sweep(ctx context.Context) error {
	var all v1alpha1.VPCList
	if err := a.ec2.List(ctx, &all); err != nil {
		return err
	}
	living := map[string]bool{}
	for i := range all.Items {
		if v := &all.Items[i]; !ec2resource.Leaving(v, v.Status.Conditions) {
			living[v.Name] = true
		}
	}
	for _, remove := range a.ec2.VPCLeavings {
		if err := remove(ctx, living); err != nil {
			return err
		}
	}
	return nil
}
