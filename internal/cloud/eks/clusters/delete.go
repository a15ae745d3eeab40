// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

func (a *API) deleteCluster() awsfront.Spec[named, clusterOutput] {
	return awsfront.Spec[named, clusterOutput]{
		About: a.aboutNamed,
		Do: func(ctx context.Context, call *awsfront.Call, in *named) (*clusterOutput, error) {
			defer a.store.Hold(in.Name)()
			found, err := a.store.Cluster(ctx, in.Name)
			if err != nil {
				return nil, err
			}
			updates, err := change.Of(ctx, a.store.Management, found, nil)
			if err != nil {
				return nil, err
			}
			running := slices.IndexFunc(updates, change.InProgress)
			var groups v1alpha1.NodeGroupList
			if err := a.store.Management.List(ctx, &groups, client.InNamespace(found.Namespace)); err != nil {
				return nil, eksfault.Away(fmt.Errorf("listing node groups of cluster %s: %w", in.Name, err))
			}
			var profiles v1alpha1.FargateProfileList
			if err := a.store.Management.List(ctx, &profiles, client.InNamespace(found.Namespace)); err != nil {
				return nil, eksfault.Away(fmt.Errorf("listing Fargate profiles of cluster %s: %w", in.Name, err))
			}
			switch {
			case len(profiles.Items) > 0:
				return nil, eksfault.New(eksfault.InUse, in.Name, "", "Cluster has Fargate profiles attached: delete %s", profiles.Items[0].Spec.Name)
			case len(groups.Items) > 0:
				return nil, eksfault.New(eksfault.InUse, in.Name, groups.Items[0].Spec.Name, "Cluster has nodegroups attached")
			case found.Spec.DeletionProtection:
				return nil, eksfault.New(eksfault.InvalidRequest, in.Name, "", "Cluster cannot be deleted because deletion protection is enabled. Disable deletion protection and try again")
			case running >= 0 && found.DeletionTimestamp.IsZero():
				return nil, eksfault.New(eksfault.InUse, in.Name, "", "Cannot delete because cluster %s currently has update %s in progress", in.Name, updates[running].Name)
			case found.DeletionTimestamp.IsZero():
				// The precondition on the UID spares a cluster that was made again under the name meanwhile.
				err := a.store.Management.Delete(ctx, found, client.Preconditions{UID: &found.UID})
				if client.IgnoreNotFound(err) != nil {
					return nil, eksfault.Away(fmt.Errorf("deleting cluster %s: %w", in.Name, err))
				}
				found.DeletionTimestamp = new(metav1.NewTime(call.Now))
			}
			return &clusterOutput{a.show(call, found)}, nil
		},
	}
}
