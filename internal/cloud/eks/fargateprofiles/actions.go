// SPDX-License-Identifier: Apache-2.0

package fargateprofiles

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

func (a *API) describeFargateProfile() awsfront.Spec[Named, profileOutput] {
	return awsfront.Spec[Named, profileOutput]{
		About: a.about,
		Do: func(ctx context.Context, call *awsfront.Call, in *Named) (*profileOutput, error) {
			of, found, err := a.get(ctx, *in)
			if err != nil {
				return nil, err
			}
			return &profileOutput{a.show(call, of, found)}, nil
		},
	}
}

type listProfilesOutput struct {
	FargateProfileNames []string
	NextToken           string
}

func (a *API) listFargateProfiles() awsfront.Spec[eksresource.ListInput, listProfilesOutput] {
	return awsfront.Spec[eksresource.ListInput, listProfilesOutput]{
		About: a.store.AboutList,
		Do: func(ctx context.Context, call *awsfront.Call, in *eksresource.ListInput) (*listProfilesOutput, error) {
			of, err := a.store.Cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			all, err := a.profiles(ctx, of)
			if err != nil {
				return nil, err
			}
			names := make([]string, 0, len(all))
			for i := range all {
				names = append(names, all[i].Spec.Name)
			}
			out := &listProfilesOutput{}
			out.FargateProfileNames, out.NextToken, err = awsresource.Page(a.store.Account, call, in.ClusterName, names, awsresource.Itself, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}

func (a *API) deleteFargateProfile() awsfront.Spec[Named, profileOutput] {
	return awsfront.Spec[Named, profileOutput]{
		About: a.about,
		Do: func(ctx context.Context, call *awsfront.Call, in *Named) (*profileOutput, error) {
			defer a.store.Hold(in.ClusterName)()
			of, found, err := a.get(ctx, *in)
			if err != nil {
				return nil, err
			}
			if found.DeletionTimestamp.IsZero() {
				if err := a.changing(ctx, of, *in, "delete"); err != nil {
					return nil, err
				}
				if err := a.store.Management.Delete(ctx, found, client.Preconditions{UID: &found.UID}); client.IgnoreNotFound(err) != nil {
					return nil, eksfault.Away(fmt.Errorf("deleting Fargate profile %s: %w", in.FargateProfileName, err))
				}
				found.DeletionTimestamp = new(metav1.NewTime(call.Now))
			}
			return &profileOutput{a.show(call, of, found)}, nil
		},
	}
}
