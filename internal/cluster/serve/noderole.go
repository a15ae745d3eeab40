// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clusteraccess"
)

// formerRoleLeft returns a function that records as an Event of a Cluster that the entry of its former node role was
// removed.
func formerRoleLeft(ctx context.Context, plane manager.Manager, namespace string) func(message string) {
	recorder := plane.GetEventRecorder("muster")
	return func(message string) {
		cluster := &v1alpha1.Cluster{}
		if err := plane.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace}, cluster); err != nil {
			return // it is being deleted
		}
		recorder.Eventf(cluster, nil, corev1.EventTypeNormal, "NodeRoleEntryRemoved", "Delete", "%s", message)
	}
}

// removeNodeRole removes the node role of a cluster that is gone.
func (c clusterHosts) removeNodeRole(ctx context.Context, namespace string) error {
	if err := clusteraccess.RemoveOwnRole(ctx, c.api, c.identityStore(), namespace); err != nil {
		return fmt.Errorf("removing the node role of cluster %s: %w", namespace, err)
	}
	return nil
}
