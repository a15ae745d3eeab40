// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
)

type deleteVpcInput struct {
	VpcID  string
	DryRun bool
}

func (a *api) deleteVpc() awsfront.Spec[deleteVpcInput, struct{}] {
	return awsfront.Spec[deleteVpcInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteVpcInput) ([]awsfront.Target, error) {
			return a.about(ctx, call, ec2id.VPC, in.VpcID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteVpcInput) (*struct{}, error) {
			defer a.locks.Hold(in.VpcID)()
			found, err := a.vpc(ctx, in.VpcID)
			if err != nil {
				return nil, err
			}
			for _, users := range a.vpcUsers {
				ids, err := users(ctx, in.VpcID)
				if err != nil {
					return nil, err
				}
				if len(ids) > 0 {
					return nil, depends("vpc", in.VpcID, ids)
				}
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			if err := a.Management.Delete(ctx, found); err != nil && !apierrors.IsNotFound(err) {
				return nil, away(fmt.Errorf("deleting %s: %w", in.VpcID, err))
			}
			return nil, a.sweep(ctx)
		},
	}
}

// sweep removes what went with VPCs that are gone: this time's, and those whose request was cut short.
func (a *api) sweep(ctx context.Context) error {
	var all v1alpha1.VPCList
	if err := a.list(ctx, &all); err != nil {
		return err
	}
	living := map[string]bool{}
	for i := range all.Items {
		if v := &all.Items[i]; !leaving(v, v.Status.Conditions) {
			living[v.Name] = true
		}
	}
	for _, remove := range a.vpcLeavings {
		if err := remove(ctx, living); err != nil {
			return err
		}
	}
	return nil
}

// depends says what keeps something from being deleted.
func depends(noun, id string, on []string) error {
	const most = 10 // that a message names
	shown := on
	if len(on) > most {
		shown = append(slices.Clone(on[:most]), "…")
	}
	return awsfault.Errorf(dependencyViolated, "The %s '%s' has dependencies and cannot be deleted: %s", noun, id, strings.Join(shown, ", "))
}
