// SPDX-License-Identifier: Apache-2.0

package eksresource

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
)

// Page cuts the page out of a list that a request asks for, and makes the token of the next.
func Page[T any](s *Store, call *awsfront.Call, parameters any, items []T, key func(T) string, token string, most *int32) (cut []T, next string, err error) {
	size, err := nexttoken.LimitsOf(Service, call.Action).Size(most)
	if err != nil {
		return nil, "", err
	}
	scope := nexttoken.Scope{Account: call.Caller.Account(), Service: Service, Action: call.Action, Parameters: parameters}
	after, err := s.Pages.Open(scope, token)
	if err != nil {
		return nil, "", err
	}
	p := nexttoken.Cut(items, key, after, size)
	if p.Last != "" {
		if next, err = s.Pages.Seal(scope, p.Last); err != nil {
			return nil, "", err
		}
	}
	if p.Items == nil {
		p.Items = []T{} // clients tell an empty list from none
	}
	return p.Items, next, nil
}

// Itself is the key of a name.
func Itself(name string) string { return name }

// ListInput is the input of actions that list something of a cluster.
type ListInput struct {
	ClusterName, NextToken string
	MaxResults             *int32
}

// AboutList is the cluster of a list as IAM is asked about it.
func (s *Store) AboutList(ctx context.Context, call *awsfront.Call, in *ListInput) ([]awsfront.Target, error) {
	return s.AboutCluster(ctx, call, in.ClusterName)
}
