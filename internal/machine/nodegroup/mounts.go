// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// A volume that is attached to a node, as those of EBS's driver are, goes to another node only when the first one
// mounts it no more. That is said by status.volumesInUse of the Node, which the kubelet writes. kube-controller-manager
// remembers it of a Node that is deleted, and waits six minutes (pkg/controller/volume/attachdetach: nodeDelete,
// ReconcilerMaxWaitForUnmountDuration). So the Node of a machine that has volumes goes after its instance, and says
// first what is true then: nothing is mounted.
//
// The taint node.kubernetes.io/out-of-service would have the same effect, for as long as the Node is there. But the
// name of a Node whose instance is gone may be the next machine's at any moment, so such a Node must not be kept until
// a driver has detached everything.

// leaveNode deletes the Node of a machine that is about to end. A Node with volumes stays until the instance has ended,
// and gets no new pods.
func (r *machines) leaveNode(ctx context.Context, m *v1alpha1.Machine) error {
	node, err := r.nodeNow(ctx, m)
	if err != nil || node == nil {
		return err
	}
	if len(node.Status.VolumesInUse) == 0 && len(node.Status.VolumesAttached) == 0 {
		return r.deleteNode(ctx, node)
	}
	if node.Spec.Unschedulable {
		return nil
	}
	before := node.DeepCopy()
	node.Spec.Unschedulable = true
	if err := r.cluster.Patch(ctx, node, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cordoning Node %s: %w", node.Name, err)
	}
	return nil
}

// mountsNothing has the Node of a machine whose instance has ended say that no volume is mounted there.
func (r *machines) mountsNothing(ctx context.Context, m *v1alpha1.Machine) error {
	node, err := r.nodeNow(ctx, m)
	if err != nil || node == nil || len(node.Status.VolumesInUse) == 0 {
		return err
	}
	before := node.DeepCopy()
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{}
	if err := r.cluster.Status().Patch(ctx, node, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Node %s, whose machine has ended: %w", node.Name, err)
	}
	return nil
}
