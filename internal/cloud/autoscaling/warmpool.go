// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// The warm pool of a group is that of its node group. EKS's guide has people change it by EKS's actions alone; EC2 Auto
// Scaling's do the same here.

// reusePolicy says whether machines return to the pool.
type reusePolicy struct{ ReuseOnScaleIn *bool }

// shownWarmPool is a warm pool as it is answered.
type shownWarmPool struct {
	MinSize, MaxGroupPreparedCapacity *int32
	PoolState, Status                 string
	InstanceReusePolicy               *reusePolicy
}

// showWarmPool is the warm pool of a node group; nil for none.
func showWarmPool(g *v1alpha1.NodeGroup) *shownWarmPool {
	pool := g.Spec.WarmPool
	if pool == nil {
		return nil
	}
	return &shownWarmPool{
		MinSize: &pool.MinSize, MaxGroupPreparedCapacity: pool.MaxGroupPreparedCapacity, PoolState: string(pool.State()),
		InstanceReusePolicy: &reusePolicy{&pool.ReuseOnScaleIn},
	}
}

type putWarmPoolInput struct {
	AutoScalingGroupName, PoolState   string
	MinSize, MaxGroupPreparedCapacity *int32
	InstanceReusePolicy               *reusePolicy
}

// pool is the warm pool that a group has after a request: what that leaves out stays, and a maximum of -1 takes an earlier
// one away.
func (in *putWarmPoolInput) pool(was *v1alpha1.WarmPool) *v1alpha1.WarmPool {
	pool := was.DeepCopy()
	if pool == nil {
		pool = &v1alpha1.WarmPool{}
	}
	if in.MinSize != nil {
		pool.MinSize = *in.MinSize
	}
	if most := in.MaxGroupPreparedCapacity; most != nil {
		if pool.MaxGroupPreparedCapacity = most; *most == -1 {
			pool.MaxGroupPreparedCapacity = nil
		}
	}
	if in.PoolState != "" {
		pool.PoolState = v1alpha1.WarmPoolState(in.PoolState)
	}
	if reuse := in.InstanceReusePolicy; reuse != nil && reuse.ReuseOnScaleIn != nil {
		pool.ReuseOnScaleIn = *reuse.ReuseOnScaleIn
	}
	return pool
}

func putWarmPool(a *api) awsfront.Spec[putWarmPoolInput, struct{}] {
	return awsfront.Spec[putWarmPoolInput, struct{}]{
		About: aboutGroup(a, func(in *putWarmPoolInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *putWarmPoolInput) (*struct{}, error) {
			return nil, a.change(ctx, in.AutoScalingGroupName, func(g *group) error {
				if g.node == nil {
					return noWarmPool(g)
				}
				spec := &g.node.Spec
				spec.WarmPool = in.pool(spec.WarmPool)
				if problems := v1alpha1.ValidateNodeGroup(g.node); len(problems) > 0 {
					return awsfault.Errorf(invalid, "%v", problems.ToAggregate())
				}
				return nil
			})
		},
	}
}

type deleteWarmPoolInput struct {
	AutoScalingGroupName string
	// ForceDelete makes no difference: a machine of a pool has no pods to wait for.
	ForceDelete bool
}

func deleteWarmPool(a *api) awsfront.Spec[deleteWarmPoolInput, struct{}] {
	return awsfront.Spec[deleteWarmPoolInput, struct{}]{
		About: aboutGroup(a, func(in *deleteWarmPoolInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteWarmPoolInput) (*struct{}, error) {
			return nil, a.change(ctx, in.AutoScalingGroupName, func(g *group) error {
				if g.node == nil {
					return noWarmPool(g)
				}
				spec := &g.node.Spec
				if spec.WarmPool == nil {
					return awsfault.Errorf(invalid, "No warm pool found for Auto Scaling group %s", g.name)
				}
				spec.WarmPool = nil
				return nil
			})
		},
	}
}

type describeWarmPoolInput struct {
	AutoScalingGroupName string
	MaxRecords           *int32
	NextToken            string
}

type describeWarmPoolOutput struct {
	Instances             []shownInstance
	WarmPoolConfiguration *shownWarmPool
	NextToken             string
}

func describeWarmPool(a *api) awsfront.Spec[describeWarmPoolInput, describeWarmPoolOutput] {
	return awsfront.Spec[describeWarmPoolInput, describeWarmPoolOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeWarmPoolInput) (*describeWarmPoolOutput, error) {
			g, err := a.group(ctx, in.AutoScalingGroupName)
			if err != nil {
				return nil, err
			}
			zones, err := a.zones(ctx)
			if err != nil {
				return nil, err
			}
			shown := []shownInstance{}
			for _, m := range g.machines {
				if m.Spec.WarmPool != "" {
					shown = append(shown, a.showInstance(g, m, zones))
				}
			}
			if g.node == nil {
				return &describeWarmPoolOutput{Instances: []shownInstance{}}, nil
			}
			out := &describeWarmPoolOutput{WarmPoolConfiguration: showWarmPool(g.node)}
			out.Instances, out.NextToken, err = awsresource.Page(a.Account, call, []any{in.AutoScalingGroupName}, shown,
				func(i shownInstance) string { return i.InstanceID }, in.MaxRecords, in.NextToken)
			return out, err
		},
	}
}

// noWarmPool refuses a warm pool of a group that no node group has.
func noWarmPool(g *group) error {
	return awsfault.Errorf(invalid, "The Auto Scaling group %s is not that of an EKS node group: Muster has warm pools for node groups alone", g.name)
}
