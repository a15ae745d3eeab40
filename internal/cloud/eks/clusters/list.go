// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

type listClustersInput struct {
	MaxResults *int32
	NextToken  string
	Include    []string // "all" adds connected clusters, which run elsewhere; an account has none
}

type listClustersOutput struct {
	Clusters  []string
	NextToken string
}

func (a *API) listClusters() awsfront.Spec[listClustersInput, listClustersOutput] {
	return awsfront.Spec[listClustersInput, listClustersOutput]{
		About: func(_ context.Context, call *awsfront.Call, _ *listClustersInput) ([]awsfront.Target, error) {
			return []awsfront.Target{{Resource: a.store.ClusterARN(call, "*")}}, nil
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listClustersInput) (*listClustersOutput, error) {
			for _, word := range in.Include {
				if word != "all" {
					return nil, awsfault.Errorf(eksfault.InvalidParameter, "include %q is not known: it must be all", word)
				}
			}
			var all v1alpha1.ClusterList
			if err := a.store.Management.List(ctx, &all); err != nil {
				return nil, eksfault.Away(fmt.Errorf("listing clusters: %w", err))
			}
			names := make([]string, 0, len(all.Items))
			for i := range all.Items {
				if c := &all.Items[i]; c.Name == v1alpha1.ClusterSlug(c.Spec.Name) && c.Namespace == c.Name { // others are not served, and not found by their name
					names = append(names, c.Spec.Name)
				}
			}
			out := &listClustersOutput{}
			var err error
			out.Clusters, out.NextToken, err = awsresource.Page(a.store.Account, call, nil, names, awsresource.Itself, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}
