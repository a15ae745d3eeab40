// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

// Lists of what no cluster of Muster's ever has. Tools read them before they do anything else.

// empty answers a request about a cluster that is there with what the function makes.
func empty[Out any](a *API, answer func() *Out) awsfront.Spec[eksresource.ListInput, Out] {
	return awsfront.Spec[eksresource.ListInput, Out]{
		About: a.store.AboutList,
		Do: func(ctx context.Context, call *awsfront.Call, in *eksresource.ListInput) (*Out, error) {
			if _, err := a.store.Cluster(ctx, in.ClusterName); err != nil {
				return nil, err
			}
			if _, err := awsresource.AskedPage(a.store.Account, call, in.ClusterName, in.MaxResults, in.NextToken); err != nil {
				return nil, err
			}
			return answer(), nil
		},
	}
}

type capabilitiesOutput struct{ Capabilities []struct{} }

func (a *API) listCapabilities() awsfront.Spec[eksresource.ListInput, capabilitiesOutput] {
	return empty(a, func() *capabilitiesOutput { return &capabilitiesOutput{[]struct{}{}} })
}

type identityProvidersOutput struct{ IdentityProviderConfigs []struct{} }

func (a *API) listIdentityProviderConfigs() awsfront.Spec[eksresource.ListInput, identityProvidersOutput] {
	return empty(a, func() *identityProvidersOutput { return &identityProvidersOutput{[]struct{}{}} })
}

type subscriptionsInput struct {
	NextToken     string
	MaxResults    *int32
	IncludeStatus []string // there are none of any status
}

type subscriptionsOutput struct{ Subscriptions []struct{} }

func (a *API) listEksAnywhereSubscriptions() awsfront.Spec[subscriptionsInput, subscriptionsOutput] {
	return awsfront.Spec[subscriptionsInput, subscriptionsOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *subscriptionsInput) (*subscriptionsOutput, error) {
			if _, err := awsresource.AskedPage(a.store.Account, call, nil, in.MaxResults, in.NextToken); err != nil {
				return nil, err
			}
			return &subscriptionsOutput{[]struct{}{}}, nil
		},
	}
}
