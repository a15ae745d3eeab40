// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
)

type updateAddonInput struct {
	Named

	AddonVersion, ServiceAccountRoleARN, ResolveConflicts, ClientRequestToken string
	ConfigurationValues                                                       *string
	PodIdentityAssociations                                                   []addonAssociation
}

func (a *API) updateAddon() awsfront.Spec[updateAddonInput, change.Output] {
	return awsfront.Spec[updateAddonInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateAddonInput) ([]awsfront.Target, error) {
			targets, err := a.About(ctx, call, &in.Named)
			if err != nil {
				return nil, err
			}
			passed, err := passrole.Targets(ctx, a.store.Management, in.ServiceAccountRoleARN, passrole.EKS, "")
			return append(targets, passed...), err
		},
		Do: a.doUpdateAddon,
	}
}

func (a *API) doUpdateAddon(ctx context.Context, call *awsfront.Call, in *updateAddonInput) (*change.Output, error) {
	sent, err := eksresource.TokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.store.Hold(in.ClusterName)()
	of, found, err := a.Get(ctx, in.Named)
	if err != nil {
		return nil, err
	}
	all, err := a.addonUpdates(ctx, of, found)
	if err != nil {
		return nil, err
	}
	for i := range all {
		again, err := sent.Made(&all[i])
		if err != nil {
			return nil, err
		}
		if again {
			return change.Answer(&all[i], nil)
		}
	}
	status := found.Phase()
	if slices.ContainsFunc(all, change.InProgress) {
		status = v1alpha1.AddonUpdating
	}
	if slices.Contains([]v1alpha1.AddonPhase{v1alpha1.AddonCreating, v1alpha1.AddonUpdating, v1alpha1.AddonDeleting}, status) {
		return nil, addonFault(eksfault.InUse, in.Named, "Addon %s cannot be updated as it is currently in %s state", in.AddonName, status)
	}
	return a.acceptAddon(ctx, sent, of, found, in)
}

// acceptAddon makes the Update that a request asks for. Fields that the request leaves out stay as they are, except the
// role: a request without a role removes it, as on EKS.
func (a *API) acceptAddon(ctx context.Context, sent awsresource.Token, of *v1alpha1.Cluster, found *v1alpha1.Addon, in *updateAddonInput) (*change.Output, error) {
	wanted := v1alpha1.AddonSpec{
		Version: in.AddonVersion, ConfigurationValues: eksresource.Deref(in.ConfigurationValues, found.Spec.ConfigurationValues), ServiceAccountRoleARN: in.ServiceAccountRoleARN,
		ResolveConflicts: v1alpha1.ResolveConflicts(in.ResolveConflicts),
	}
	known, err := a.checkAddon(ctx, of, in.Named, wanted, in.PodIdentityAssociations)
	if err != nil {
		return nil, err
	}
	settings := &v1alpha1.UpdateAddonSettings{
		Version: &known.Version, ConfigurationValues: in.ConfigurationValues, ServiceAccountRoleARN: &in.ServiceAccountRoleARN, ResolveConflicts: wanted.ResolveConflicts,
	}
	u := &v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace}, Spec: v1alpha1.UpdateSpec{
		ClusterName: of.Spec.Name, Addon: found.Name, TargetUID: string(found.UID), Type: v1alpha1.UpdateAddon, Change: v1alpha1.UpdateChange{Addon: settings},
	}}
	for _, p := range []struct{ name, value string }{
		{"AddonVersion", in.AddonVersion},
		{"ServiceAccountRoleArn", in.ServiceAccountRoleARN},
		{"ResolveConflicts", in.ResolveConflicts},
		{"ConfigurationValues", eksresource.Deref(in.ConfigurationValues, "")},
	} {
		if p.value != "" {
			u.Spec.Params = append(u.Spec.Params, v1alpha1.UpdateParam{Type: p.name, Value: firstOf(p.value)})
		}
	}
	return change.Answer(u, change.Create(ctx, a.store.Management, sent, u, addonFault(eksfault.InUse, in.Named, "An update of this id exists: try again")))
}

// firstOf is what a parameter of an update can hold of a value.
func firstOf(value string) string {
	const limit = 2048
	runes := []rune(value)
	return string(runes[:min(len(runes), limit)])
}

// addonUpdates lists the updates of an add-on. Updates of an earlier add-on of that name are left out.
func (a *API) addonUpdates(ctx context.Context, of *v1alpha1.Cluster, found *v1alpha1.Addon) ([]v1alpha1.Update, error) {
	return change.List(ctx, a.store.Management, of, func(u *v1alpha1.Update) bool { return IsUpdateOf(u, of, found) })
}

// IsUpdateOf reports whether an update is of the add-on. Updates of an earlier add-on of that name do not count.
func IsUpdateOf(u *v1alpha1.Update, of *v1alpha1.Cluster, found *v1alpha1.Addon) bool {
	return u.Spec.ClusterName == of.Spec.Name && u.Spec.Addon == found.Name && (u.Spec.TargetUID == "" || u.Spec.TargetUID == string(found.UID))
}
