// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
)

// named is the input of actions about one cluster.
type named struct{ Name string }

type clusterOutput struct{ Cluster *cluster }

func (a *API) describeCluster() awsfront.Spec[named, clusterOutput] {
	return awsfront.Spec[named, clusterOutput]{
		About: a.aboutNamed,
		Do: func(ctx context.Context, call *awsfront.Call, in *named) (*clusterOutput, error) {
			found, err := a.store.Cluster(ctx, in.Name)
			if err != nil {
				return nil, err
			}
			shown := a.show(call, found)
			shown.Status, err = change.Status(ctx, a.store.Management, shown.Status, found, nil)
			return &clusterOutput{shown}, err
		},
	}
}

func (a *API) aboutNamed(ctx context.Context, call *awsfront.Call, in *named) ([]awsfront.Target, error) {
	return a.store.AboutCluster(ctx, call, in.Name)
}
