// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/awsfront"
)

// updateNodegroupConfigInput has no labels and taints: on EKS they change on running nodes, which Muster does not do yet, so they are refused.
type updateNodegroupConfigInput struct {
	ClusterName, NodegroupName, ClientRequestToken string
	ScalingConfig                                  *scaling
}

func (a *api) updateNodegroupConfig() awsfront.Spec[updateNodegroupConfigInput, updateOutput] {
	return awsfront.Spec[updateNodegroupConfigInput, updateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateNodegroupConfigInput) ([]awsfront.Target, error) {
			return a.aboutNodegroup(ctx, call, in.ClusterName, in.NodegroupName)
		},
		Do: a.doUpdateNodegroupConfig,
	}
}

func (a *api) doUpdateNodegroupConfig(ctx context.Context, call *awsfront.Call, in *updateNodegroupConfigInput) (*updateOutput, error) {
	sent, err := tokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.locks.hold(in.ClusterName)()
	of, group, err := a.nodegroup(ctx, in.ClusterName, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	again, err := a.repeated(ctx, sent, of, group)
	if err != nil {
		return nil, err
	}
	if again != nil {
		return &updateOutput{showUpdate(again)}, nil
	}
	if !group.DeletionTimestamp.IsZero() {
		return nil, fault(inUse, in.ClusterName, in.NodegroupName, "Nodegroup cannot be updated as it is currently not in Active State: it is %s", deleting)
	}
	if in.ScalingConfig == nil {
		return nil, fault(invalidParameter, in.ClusterName, in.NodegroupName, "The request changes nothing: give scalingConfig")
	}
	if _, err := scaled(group.Spec.ScalingConfig, *in.ScalingConfig); err != nil {
		return nil, err
	}
	p := planned{of: of, group: group, kind: v1alpha1.UpdateConfig, change: v1alpha1.UpdateChange{Scaling: new(v1alpha1.UpdateScaling(*in.ScalingConfig))}}
	for _, size := range []struct {
		name string
		to   *int32
	}{{"MinSize", in.ScalingConfig.MinSize}, {"MaxSize", in.ScalingConfig.MaxSize}, {"DesiredSize", in.ScalingConfig.DesiredSize}} {
		if size.to != nil {
			p.param(size.name, fmt.Sprint(*size.to))
		}
	}
	return a.accept(ctx, sent, p)
}
