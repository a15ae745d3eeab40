// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
)

func (a *api) describeAddon() awsfront.Spec[namedAddon, addonOutput] {
	return awsfront.Spec[namedAddon, addonOutput]{
		About: a.aboutNamedAddon,
		Do: func(ctx context.Context, call *awsfront.Call, in *namedAddon) (*addonOutput, error) {
			of, found, err := a.addon(ctx, *in)
			if err != nil {
				return nil, err
			}
			return a.answerAddon(ctx, call, of, found)
		},
	}
}

type listAddonsInput struct {
	ClusterName, NextToken string
	MaxResults             *int32
}

type listAddonsOutput struct {
	Addons    []string
	NextToken string
}

func (a *api) listAddons() awsfront.Spec[listAddonsInput, listAddonsOutput] {
	return awsfront.Spec[listAddonsInput, listAddonsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listAddonsInput) ([]awsfront.Target, error) {
			return a.aboutCluster(ctx, call, in.ClusterName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listAddonsInput) (*listAddonsOutput, error) {
			of, err := a.cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			var all v1alpha1.AddonList
			if err := a.Management.List(ctx, &all, client.InNamespace(of.Namespace)); err != nil {
				return nil, away(fmt.Errorf("listing the add-ons of cluster %s: %w", in.ClusterName, err))
			}
			var names []string
			for i := range all.Items {
				names = append(names, all.Items[i].Name)
			}
			out := &listAddonsOutput{}
			out.Addons, out.NextToken, err = page(a, call, in.ClusterName, names, itself, in.NextToken, in.MaxResults)
			return out, err
		},
	}
}
