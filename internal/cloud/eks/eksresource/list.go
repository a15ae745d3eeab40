// SPDX-License-Identifier: Apache-2.0

package eksresource

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
)

// ListInput is the input of actions that list something of a cluster.
type ListInput struct {
	ClusterName, NextToken string
	MaxResults             *int32
}

// AboutList is the cluster of a list as IAM is asked about it.
func (s *Store) AboutList(ctx context.Context, call *awsfront.Call, in *ListInput) ([]awsfront.Target, error) {
	return s.AboutCluster(ctx, call, in.ClusterName)
}
