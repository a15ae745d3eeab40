// SPDX-License-Identifier: Apache-2.0

package podassociations

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
)

func (a *API) describePodIdentityAssociation() awsfront.Spec[named, associationOutput] {
	return awsfront.Spec[named, associationOutput]{
		About: a.aboutAssociation,
		Do: func(ctx context.Context, call *awsfront.Call, in *named) (*associationOutput, error) {
			found, err := a.association(ctx, *in)
			if err != nil {
				return nil, err
			}
			return &associationOutput{a.showAssociation(call, found)}, nil
		},
	}
}

func (a *API) deletePodIdentityAssociation() awsfront.Spec[named, associationOutput] {
	return awsfront.Spec[named, associationOutput]{
		About: a.aboutAssociation,
		Do: func(ctx context.Context, call *awsfront.Call, in *named) (*associationOutput, error) {
			defer a.store.Hold(in.ClusterName)()
			found, err := a.association(ctx, *in)
			if err != nil {
				return nil, err
			}
			if err := a.store.Management.Delete(ctx, found, client.Preconditions{UID: &found.UID}); client.IgnoreNotFound(err) != nil {
				return nil, eksfault.Away(fmt.Errorf("deleting pod identity association %s: %w", found.Name, err))
			}
			return &associationOutput{a.showAssociation(call, found)}, nil
		},
	}
}

type updateAssociationInput struct {
	named

	RoleARN, ClientRequestToken string
	TargetRoleARN, Policy       *string // an empty one takes it away
	DisableSessionTags          *bool
}

// roleAfter is the role of an association after an update: what its pods may do with the role that it has changes as
// well. It is empty if there is no such association.
func (a *API) roleAfter(ctx context.Context, in *updateAssociationInput) (string, error) {
	if in.RoleARN != "" {
		return in.RoleARN, nil
	}
	of, err := a.store.FindCluster(ctx, in.ClusterName)
	if err != nil || of == nil {
		return "", err
	}
	found, err := a.Find(ctx, of, in.AssociationID)
	if err != nil || found == nil {
		return "", err
	}
	return found.Spec.RoleARN, nil
}

func (a *API) updatePodIdentityAssociation() awsfront.Spec[updateAssociationInput, associationOutput] {
	return awsfront.Spec[updateAssociationInput, associationOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateAssociationInput) ([]awsfront.Target, error) {
			targets, err := a.aboutAssociation(ctx, call, &in.named)
			if err != nil {
				return nil, err
			}
			role, err := a.roleAfter(ctx, in)
			if err != nil {
				return nil, err
			}
			passed, err := passrole.Targets(ctx, a.store.Management, role, passrole.Pods, a.store.ClusterARN(call, in.ClusterName))
			return append(targets, passed...), err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *updateAssociationInput) (*associationOutput, error) {
			defer a.store.Hold(in.ClusterName)()
			found, err := a.association(ctx, in.named)
			if err != nil {
				return nil, err
			}
			before := found.DeepCopy()
			for _, text := range []struct {
				from *string
				into *string
			}{{in.TargetRoleARN, &found.Spec.TargetRoleARN}, {in.Policy, &found.Spec.Policy}} {
				if text.from != nil {
					*text.into = *text.from
				}
			}
			if in.RoleARN != "" {
				found.Spec.RoleARN = in.RoleARN
			}
			found.Spec.DisableSessionTags = eksresource.Deref(in.DisableSessionTags, found.Spec.DisableSessionTags)
			if err := a.checkAssociation(ctx, call, found.Spec); err != nil {
				return nil, err
			}
			if err := a.store.Management.Patch(ctx, found, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
				return nil, eksfault.Away(fmt.Errorf("changing pod identity association %s: %w", found.Name, err))
			}
			return &associationOutput{a.showAssociation(call, found)}, nil
		},
	}
}

type listAssociationsInput struct {
	ClusterName, Namespace, ServiceAccount, NextToken string
	MaxResults                                        *int32
}

type listAssociationsOutput struct {
	Associations []associationSummary
	NextToken    string
}

func (a *API) listPodIdentityAssociations() awsfront.Spec[listAssociationsInput, listAssociationsOutput] {
	return awsfront.Spec[listAssociationsInput, listAssociationsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listAssociationsInput) ([]awsfront.Target, error) {
			return a.store.AboutCluster(ctx, call, in.ClusterName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listAssociationsInput) (*listAssociationsOutput, error) {
			of, err := a.store.Cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			all, err := a.associations(ctx, of)
			if err != nil {
				return nil, err
			}
			var found []associationSummary
			for i := range all {
				s := all[i].Spec
				if (in.Namespace == "" || s.Namespace == in.Namespace) && (in.ServiceAccount == "" || s.ServiceAccount == in.ServiceAccount) {
					found = append(found, associationSummary{s.ClusterName, s.Namespace, s.ServiceAccount, a.associationARN(call, s.ClusterName, all[i].Name), all[i].Name, s.OwnerARN})
				}
			}
			out := &listAssociationsOutput{}
			parameters := []string{in.ClusterName, in.Namespace, in.ServiceAccount}
			out.Associations, out.NextToken, err = awsresource.Page(a.store.Account, call, parameters, found, func(s associationSummary) string { return s.AssociationID }, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}
