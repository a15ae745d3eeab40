// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

func (a *API) describeAddon() awsfront.Spec[Named, addonOutput] {
	return awsfront.Spec[Named, addonOutput]{
		About: a.About,
		Do: func(ctx context.Context, call *awsfront.Call, in *Named) (*addonOutput, error) {
			of, found, err := a.Get(ctx, *in)
			if err != nil {
				return nil, err
			}
			return a.answerAddon(ctx, call, of, found)
		},
	}
}

type listAddonsOutput struct {
	Addons    []string
	NextToken string
}

func (a *API) listAddons() awsfront.Spec[eksresource.ListInput, listAddonsOutput] {
	return awsfront.Spec[eksresource.ListInput, listAddonsOutput]{
		About: a.store.AboutList,
		Do: func(ctx context.Context, call *awsfront.Call, in *eksresource.ListInput) (*listAddonsOutput, error) {
			of, err := a.store.Cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			var all v1alpha1.AddonList
			if err := a.store.Management.List(ctx, &all, client.InNamespace(of.Namespace)); err != nil {
				return nil, eksfault.Away(fmt.Errorf("listing the add-ons of cluster %s: %w", in.ClusterName, err))
			}
			var names []string
			for i := range all.Items {
				names = append(names, all.Items[i].Name)
			}
			out := &listAddonsOutput{}
			out.Addons, out.NextToken, err = awsresource.Page(a.store.Account, call, in.ClusterName, names, awsresource.Itself, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}
