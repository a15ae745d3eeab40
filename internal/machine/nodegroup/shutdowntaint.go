// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// taintShutdown is on the Node of a machine that is stopped, as cloud controllers put it on Nodes of instances that are
// shut down (k8s.io/cloud-provider/api, TaintNodeShutdown).
const taintShutdown = "node.cloudprovider.kubernetes.io/shutdown"

// taintShutdown puts the taint of stopped machines on the machine's Node, or takes it away when the machine runs.
func (t *turn) taintShutdown(ctx context.Context, stopped bool) error {
	node := t.node
	if node == nil || machineOf(node) != t.m.Name {
		return nil
	}
	is := func(taint corev1.Taint) bool { return taint.Key == taintShutdown }
	if slices.ContainsFunc(node.Spec.Taints, is) == stopped {
		return nil
	}
	before := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), is)
	if stopped {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taintShutdown, Effect: corev1.TaintEffectNoSchedule})
	}
	if err := t.cluster.Patch(ctx, node, lockedPatch(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the taint %s of Node %s: %w", taintShutdown, node.Name, err)
	}
	return nil
}
