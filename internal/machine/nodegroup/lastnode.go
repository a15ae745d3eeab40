// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// reasonLastNode is the reason of the Event about a machine whose pods have nowhere to go.
const reasonLastNode = "LastNode"

// isLast reports whether nothing is to take the place of a machine that is being deleted or returns to the warm pool: no node group wants a
// machine, no other machine of the cluster stays, and no other Node is Ready, such as a host that joined. Then no pod
// can go elsewhere, and a disruption budget that waits for it to be ready there would be waited for in vain. Nodes of
// machines that are being deleted, too, are not counted: a group's machines go together.
func (r *machines) isLast(ctx context.Context, m *v1alpha1.Machine) (bool, error) {
	if m.DeletionTimestamp.IsZero() && m.Spec.WarmPool == "" {
		return false, nil
	}
	var groups v1alpha1.NodeGroupList
	if err := r.management.List(ctx, &groups, client.InNamespace(r.namespace())); err != nil {
		return false, fmt.Errorf("listing node groups: %w", err)
	}
	for i := range groups.Items {
		if g := &groups.Items[i]; g.DeletionTimestamp.IsZero() && g.Spec.ScalingConfig.DesiredSize > 0 {
			return false, nil
		}
	}
	var all v1alpha1.MachineList
	if err := r.management.List(ctx, &all); err != nil {
		return false, fmt.Errorf("listing machines: %w", err)
	}
	going := map[string]bool{}
	for i := range all.Items {
		switch o := &all.Items[i]; {
		case !r.ours(o):
		case o.Spec.WarmPool != "", o.Spec.Fargate != nil: // it has no node, or leaves it; a machine of Fargate takes no other pod
			going[o.Name] = true
		case o.DeletionTimestamp.IsZero():
			return false, nil
		default:
			going[o.Name] = true
		}
	}
	var nodes corev1.NodeList
	if err := r.cluster.List(ctx, &nodes); err != nil {
		return false, fmt.Errorf("listing Nodes: %w", err)
	}
	for i := range nodes.Items {
		if n := &nodes.Items[i]; !going[machineOf(n)] && readyOf(n).Status == corev1.ConditionTrue {
			return false, nil
		}
	}
	return true, nil
}

// aboutLast is what the status of a group adds about the last node, if one of its machines is that.
func aboutLast(machines []v1alpha1.Machine) string {
	if about := readiness.AboutLastNode(machines); about != "" {
		return "; " + about
	}
	return ""
}
