// SPDX-License-Identifier: Apache-2.0

package podassociations

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
	"muster.dev/muster/internal/plane/podidentity"
)

type createAssociationInput struct {
	ClusterName, Namespace, ServiceAccount, RoleARN, TargetRoleARN, Policy, ClientRequestToken string
	DisableSessionTags                                                                         *bool
	Tags                                                                                       map[string]string
}

func (a *API) createPodIdentityAssociation() awsfront.Spec[createAssociationInput, associationOutput] {
	return awsfront.Spec[createAssociationInput, associationOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createAssociationInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.ClusterName)
			if err != nil {
				return nil, err
			}
			awsresource.RequestTags(targets[0].Conditions, awstag.Sorted(in.Tags))
			passed, err := passrole.Targets(ctx, a.store.Management, in.RoleARN, passrole.Pods, a.store.ClusterARN(call, in.ClusterName))
			return append(targets, passed...), err
		},
		Do: a.doCreateAssociation,
	}
}

func (a *API) doCreateAssociation(ctx context.Context, call *awsfront.Call, in *createAssociationInput) (*associationOutput, error) {
	sent, err := eksresource.TokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.store.Hold(in.ClusterName)()
	of, err := a.store.Cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, err
	}
	all, err := a.associations(ctx, of)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if again, err := sent.Made(&all[i]); err != nil {
			return nil, err
		} else if again {
			return &associationOutput{a.showAssociation(call, &all[i])}, nil
		}
	}
	for i := range all {
		if all[i].Spec.Namespace == in.Namespace && all[i].Spec.ServiceAccount == in.ServiceAccount {
			return nil, eksfault.New(eksfault.InUse, in.ClusterName, "", "Association already exists: %s", all[i].Name)
		}
	}
	if !of.DeletionTimestamp.IsZero() {
		return nil, eksfault.New(eksfault.InvalidRequest, in.ClusterName, "", "Cluster '%s' is not in ACTIVE status: it is %s", in.ClusterName, eksresource.Deleting)
	}
	id, err := podidentity.NewID()
	if err != nil {
		return nil, err
	}
	wanted := &v1alpha1.PodIdentityAssociation{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: id},
		Spec: v1alpha1.PodIdentityAssociationSpec{
			ClusterName: in.ClusterName, Namespace: in.Namespace, ServiceAccount: in.ServiceAccount, RoleARN: in.RoleARN, TargetRoleARN: in.TargetRoleARN,
			DisableSessionTags: eksresource.Deref(in.DisableSessionTags, false), Policy: in.Policy,
		},
	}
	if wanted.Spec.Tags, err = eksresource.ReadTags(in.Tags); err != nil {
		return nil, err
	}
	if err := a.checkAssociation(ctx, call, wanted.Spec); err != nil {
		return nil, err
	}
	sent.Mark(wanted)
	if err := a.store.Management.Create(ctx, wanted); err != nil {
		return nil, eksfault.NotMade(err, eksfault.New(eksfault.InUse, in.ClusterName, "", "An association of this id exists: try again"))
	}
	return &associationOutput{a.showAssociation(call, wanted)}, nil
}
