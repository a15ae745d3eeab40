// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

// Named is the input of actions about one node group.
type Named struct{ ClusterName, NodegroupName string }

type nodegroupOutput struct{ Nodegroup *nodegroup }

func (a *API) describeNodegroup() awsfront.Spec[Named, nodegroupOutput] {
	return awsfront.Spec[Named, nodegroupOutput]{
		About: a.About,
		Do: func(ctx context.Context, call *awsfront.Call, in *Named) (*nodegroupOutput, error) {
			of, found, err := a.Get(ctx, in.ClusterName, in.NodegroupName)
			if err != nil {
				return nil, err
			}
			shown := a.showNodegroup(call, of, found)
			shown.Status, err = change.Status(ctx, a.store.Management, shown.Status, of, found)
			return &nodegroupOutput{shown}, err
		},
	}
}

type listNodegroupsOutput struct {
	Nodegroups []string
	NextToken  string
}

func (a *API) listNodegroups() awsfront.Spec[eksresource.ListInput, listNodegroupsOutput] {
	return awsfront.Spec[eksresource.ListInput, listNodegroupsOutput]{
		About: a.store.AboutList,
		Do: func(ctx context.Context, call *awsfront.Call, in *eksresource.ListInput) (*listNodegroupsOutput, error) {
			of, err := a.store.Cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			var all v1alpha1.NodeGroupList
			if err := a.store.Management.List(ctx, &all, client.InNamespace(of.Namespace)); err != nil {
				return nil, eksfault.Away(fmt.Errorf("listing node groups of cluster %s: %w", in.ClusterName, err))
			}
			names := make([]string, 0, len(all.Items))
			for i := range all.Items {
				if g := &all.Items[i]; g.Name == v1alpha1.NodeGroupSlug(g.Spec.Name) {
					names = append(names, g.Spec.Name)
				}
			}
			out := &listNodegroupsOutput{}
			out.Nodegroups, out.NextToken, err = awsresource.Page(a.store.Account, call, in.ClusterName, names, awsresource.Itself, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}
