// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
)

// named is the input of actions about one cluster.
type named struct{ Name string }

type clusterOutput struct{ Cluster *cluster }

func (a *api) describeCluster() awsfront.Spec[named, clusterOutput] {
	return awsfront.Spec[named, clusterOutput]{
		About: a.aboutNamed,
		Do: func(ctx context.Context, call *awsfront.Call, in *named) (*clusterOutput, error) {
			found, err := a.cluster(ctx, in.Name)
			if err != nil {
				return nil, err
			}
			shown := a.show(call, found)
			shown.Status, err = a.orUpdating(ctx, shown.Status, found, nil)
			return &clusterOutput{shown}, err
		},
	}
}

func (a *api) aboutNamed(ctx context.Context, call *awsfront.Call, in *named) ([]awsfront.Target, error) {
	return a.aboutCluster(ctx, call, in.Name)
}
