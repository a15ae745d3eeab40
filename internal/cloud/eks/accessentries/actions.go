// SPDX-License-Identifier: Apache-2.0

package accessentries

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

func (a *API) describeAccessEntry() awsfront.Spec[namedEntry, accessEntryOutput] {
	return awsfront.Spec[namedEntry, accessEntryOutput]{
		About: a.aboutEntry,
		Do: func(ctx context.Context, call *awsfront.Call, in *namedEntry) (*accessEntryOutput, error) {
			e, found, err := a.entry(ctx, *in)
			if err != nil {
				return nil, err
			}
			return &accessEntryOutput{a.showEntry(call, e.of, found)}, nil
		},
	}
}

func (a *API) deleteAccessEntry() awsfront.Spec[namedEntry, struct{}] {
	return awsfront.Spec[namedEntry, struct{}]{
		About: a.aboutEntry,
		Do: func(ctx context.Context, _ *awsfront.Call, in *namedEntry) (*struct{}, error) {
			defer a.store.Hold(in.ClusterName)()
			e, found, err := a.entry(ctx, *in)
			if err != nil {
				return nil, err
			}
			if err := e.Delete(ctx, found, client.Preconditions{UID: &found.UID}); client.IgnoreNotFound(err) != nil {
				return nil, eksfault.Away(fmt.Errorf("deleting access entry %s: %w", found.Name, err))
			}
			return nil, nil
		},
	}
}

type updateAccessEntryInput struct {
	namedEntry

	Username, ClientRequestToken string
	KubernetesGroups             *[]string
}

func (a *API) updateAccessEntry() awsfront.Spec[updateAccessEntryInput, accessEntryOutput] {
	return awsfront.Spec[updateAccessEntryInput, accessEntryOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateAccessEntryInput) ([]awsfront.Target, error) {
			return a.aboutEntry(ctx, call, &in.namedEntry)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *updateAccessEntryInput) (*accessEntryOutput, error) {
			defer a.store.Hold(in.ClusterName)()
			e, found, err := a.entry(ctx, in.namedEntry)
			if err != nil {
				return nil, err
			}
			if err := e.change(ctx, found, func(spec *accessv1alpha1.AccessEntrySpec) {
				if in.KubernetesGroups != nil {
					spec.KubernetesGroups = *in.KubernetesGroups
				}
				if in.Username != "" {
					spec.Username = in.Username
				}
			}); err != nil {
				return nil, err
			}
			return &accessEntryOutput{a.showEntry(call, e.of, found)}, nil
		},
	}
}

type listEntriesInput struct {
	ClusterName, AssociatedPolicyARN, NextToken string
	MaxResults                                  *int32
}

type listEntriesOutput struct {
	AccessEntries []string
	NextToken     string
}

func (a *API) listAccessEntries() awsfront.Spec[listEntriesInput, listEntriesOutput] {
	return awsfront.Spec[listEntriesInput, listEntriesOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listEntriesInput) ([]awsfront.Target, error) {
			return a.store.AboutCluster(ctx, call, in.ClusterName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listEntriesInput) (*listEntriesOutput, error) {
			e, err := a.entriesOf(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			all, err := e.all(ctx)
			if err != nil {
				return nil, err
			}
			var principals []string
			for i := range all {
				if in.AssociatedPolicyARN == "" || associated(&all[i], in.AssociatedPolicyARN) >= 0 {
					principals = append(principals, all[i].Spec.PrincipalARN)
				}
			}
			out := &listEntriesOutput{}
			out.AccessEntries, out.NextToken, err = awsresource.Page(a.store.Account, call, []string{in.ClusterName, in.AssociatedPolicyARN}, principals, awsresource.Itself, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}
