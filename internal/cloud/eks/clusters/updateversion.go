// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

type updateClusterVersionInput struct {
	Name, Version, ClientRequestToken string
	Force                             *bool
}

// updateClusterVersion refuses every version: there is one.
func (a *API) updateClusterVersion() awsfront.Spec[updateClusterVersionInput, change.Output] {
	return awsfront.Spec[updateClusterVersionInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateClusterVersionInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.Name)
			if err == nil {
				targets[0].Conditions["eks:kubernetesVersion"] = []string{in.Version}
			}
			return targets, err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *updateClusterVersionInput) (*change.Output, error) {
			of, err := a.store.Cluster(ctx, in.Name)
			if err != nil {
				return nil, err
			}
			is := eksresource.Version(of)
			if in.Version == is {
				return nil, eksfault.New(eksfault.InvalidParameter, in.Name, "", "Cluster is already at version %s", is)
			}
			return nil, eksfault.New(eksfault.InvalidParameter, in.Name, "", "Unsupported Kubernetes minor version update from %s to %.20s: Muster has %s only", is, in.Version, is)
		},
	}
}
