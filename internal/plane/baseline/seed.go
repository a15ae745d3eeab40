// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/plane/clusterconfig"
)

// Seed makes the objects of a cluster from its record. The namespace comes first, and the Cluster last: once it is
// there, it says what the cluster is, and node groups are the user's alone: one that the user deletes does not come
// back.
func Seed(ctx context.Context, api client.Client, wanted clusterconfig.Config) error {
	if err := EnsureNamespace(ctx, api, wanted.Cluster.Namespace); err != nil {
		return err
	}
	err := api.Get(ctx, client.ObjectKeyFromObject(wanted.Cluster), wanted.Cluster.DeepCopy())
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for the cluster: %w", err)
	}
	for _, group := range wanted.NodeGroups {
		if err := api.Create(ctx, group.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making node group %s: %w", group.Spec.Name, err)
		}
	}
	if err := api.Create(ctx, wanted.Cluster.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making cluster %s: %w", wanted.Cluster.Spec.Name, err)
	}
	return nil
}
