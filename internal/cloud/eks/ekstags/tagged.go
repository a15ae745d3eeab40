// SPDX-License-Identifier: Apache-2.0

package ekstags

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

// all are the clusters and their parts with their tags. Access entries are not among them, as on AWS: they are objects of
// the clusters, which may be away.
func (a *API) all(ctx context.Context, call *awsfront.Call) ([]awsresource.Tagged, error) {
	var clusters v1alpha1.ClusterList
	var groups v1alpha1.NodeGroupList
	var profiles v1alpha1.FargateProfileList
	var addons v1alpha1.AddonList
	var associations v1alpha1.PodIdentityAssociationList
	for _, list := range []client.ObjectList{&clusters, &groups, &profiles, &addons, &associations} {
		if err := a.store.Management.List(ctx, list); err != nil {
			return nil, eksfault.Away(fmt.Errorf("listing tags: %w", err))
		}
	}
	var all []awsresource.Tagged
	names := map[string]string{} // of clusters, by namespace
	for i := range clusters.Items {
		c := &clusters.Items[i]
		names[c.Namespace] = c.Spec.Name
		all = append(all, awsresource.Tagged{ARN: a.store.ClusterARN(call, c.Spec.Name), Type: eksresource.Service + ":cluster", Tags: c.Spec.Tags})
	}
	add := func(kind string, object client.Object, tags v1alpha1.Tags, rest string) {
		if cluster := names[object.GetNamespace()]; cluster != "" {
			all = append(all, awsresource.Tagged{ARN: a.store.ARN(call, kind+"/"+cluster+"/"+rest), Type: eksresource.Service + ":" + kind, Tags: tags})
		}
	}
	for i := range groups.Items {
		g := &groups.Items[i]
		add("nodegroup", g, g.Spec.Tags, g.Spec.Name+"/"+string(g.UID))
	}
	for i := range profiles.Items {
		p := &profiles.Items[i]
		add("fargateprofile", p, p.Spec.Tags, p.Spec.Name+"/"+string(p.UID))
	}
	for i := range addons.Items {
		d := &addons.Items[i]
		add("addon", d, d.Spec.Tags, d.Name+"/"+string(d.UID))
	}
	for i := range associations.Items {
		p := &associations.Items[i]
		add("podidentityassociation", p, p.Spec.Tags, p.Name)
	}
	return all, nil
}
