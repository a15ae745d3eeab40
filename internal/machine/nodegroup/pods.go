// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// fieldNodeName is the field by which the API server finds the pods of a node.
const fieldNodeName = "spec.nodeName"

// podsOf lists the pods that are bound to a machine whose Node is gone, or stays for its volumes. It is asked while the
// name still is the machine's own: later, another machine may have its address, and pods of its own.
func (r *machines) podsOf(ctx context.Context, m *v1alpha1.Machine) ([]corev1.Pod, error) {
	if m.Status.NodeName == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	err := r.clusterLive.Get(ctx, client.ObjectKey{Name: m.Status.NodeName}, node)
	if err == nil && machineOf(node) != m.Name {
		return nil, nil // the name is another machine's by now, and so are the pods
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the Node: %w", err)
	}
	pods := &corev1.PodList{}
	if err := r.clusterLive.List(ctx, pods, client.MatchingFields{fieldNodeName: m.Status.NodeName}); err != nil {
		return nil, fmt.Errorf("listing the pods of the ended machine: %w", err)
	}
	return pods.Items, nil
}

// deletePods removes the pods of a machine that has ended. Nobody else could say that they have: upstream waits a
// minute for a node to come back (podgc), while Services send to them and no others take their place.
func (r *machines) deletePods(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		pod := &pods[i]
		err := r.cluster.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting pod %s/%s, whose machine has ended: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}
