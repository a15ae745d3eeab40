// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
)

type createAddonInput struct {
	Named

	AddonVersion, ServiceAccountRoleARN, ResolveConflicts, ClientRequestToken, ConfigurationValues string
	Tags                                                                                           map[string]string
	PodIdentityAssociations                                                                        []addonAssociation
	NamespaceConfig                                                                                *namespaceConfig
}

func (a *API) createAddon() awsfront.Spec[createAddonInput, addonOutput] {
	return awsfront.Spec[createAddonInput, addonOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createAddonInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.ClusterName)
			if err != nil {
				return nil, err
			}
			awsresource.RequestTags(targets[0].Conditions, awstag.Sorted(in.Tags))
			passed, err := passrole.Targets(ctx, a.store.Management, in.ServiceAccountRoleARN, passrole.EKS, "")
			return append(targets, passed...), err
		},
		Do: a.doCreateAddon,
	}
}

func (a *API) doCreateAddon(ctx context.Context, call *awsfront.Call, in *createAddonInput) (*addonOutput, error) {
	sent, err := eksresource.TokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.store.Hold(in.ClusterName)()
	of, err := a.store.Cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, err
	}
	wanted, err := a.wantedAddon(ctx, of, in)
	if err != nil {
		return nil, err
	}
	exists := addonFault(eksfault.InUse, in.Named, "Addon already exists.")
	there, err := a.Find(ctx, of, in.AddonName)
	if err != nil {
		return nil, err
	}
	if there != nil {
		if err := sent.CheckMade(there, exists); err != nil {
			return nil, err
		}
		return a.answerAddon(ctx, call, of, there)
	}
	if status, _ := eksresource.ClusterStatus(of); status != eksresource.Active {
		return nil, addonFault(eksfault.InvalidRequest, in.Named, "Cluster '%s' is not in ACTIVE status: it is %s", in.ClusterName, status)
	}
	sent.Mark(wanted)
	if err := a.store.Management.Create(ctx, wanted); err != nil {
		return nil, eksfault.NotMade(err, exists)
	}
	return a.answerAddon(ctx, call, of, wanted)
}

func (a *API) answerAddon(ctx context.Context, call *awsfront.Call, of *v1alpha1.Cluster, found *v1alpha1.Addon) (*addonOutput, error) {
	shown, err := a.showAddon(ctx, call, of, found)
	if err != nil {
		return nil, err
	}
	return &addonOutput{shown}, nil
}

// wantedAddon is the object that a request asks for.
func (a *API) wantedAddon(ctx context.Context, of *v1alpha1.Cluster, in *createAddonInput) (*v1alpha1.Addon, error) {
	wanted := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: in.AddonName}, Spec: v1alpha1.AddonSpec{
		AddonName: in.AddonName, Version: in.AddonVersion, ConfigurationValues: in.ConfigurationValues, ServiceAccountRoleARN: in.ServiceAccountRoleARN,
		ResolveConflicts: v1alpha1.ResolveConflicts(in.ResolveConflicts),
	}}
	known, err := a.checkAddon(ctx, of, in.Named, wanted.Spec, in.PodIdentityAssociations)
	if err != nil {
		return nil, err
	}
	if known.Name == karpenter.Name && of.Spec.Compute.On() {
		return nil, addonFault(eksfault.InvalidParameter, in.Named, "%s", karpenter.InControlPlane(of.Spec.Name))
	}
	if in.NamespaceConfig != nil && in.NamespaceConfig.Namespace != "" && in.NamespaceConfig.Namespace != known.Namespace {
		return nil, addonFault(eksfault.InvalidParameter, in.Named, "Add-on %s is in namespace %s: leave namespaceConfig out", known.Name, known.Namespace)
	}
	wanted.Spec.Version = known.Version
	wanted.Spec.Tags, err = eksresource.ReadTags(in.Tags)
	return wanted, err
}
