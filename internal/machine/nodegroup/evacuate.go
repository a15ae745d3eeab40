// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// evacuate cordons the node of a machine that is to be replaced, and drains it when it is its turn, while it lives, as it
// drains that of a machine that is to be rebooted. If the rollout ends before the machine is replaced, or the reboot is
// over, its node takes pods again. It returns when to look again, or 0.
func (t *turn) evacuate(ctx context.Context) (time.Duration, error) {
	if t.m.Spec.WarmPool != "" { // it is drained on its way into the pool, and by nobody else
		return 0, nil
	}
	group, err := t.group(ctx, t.m)
	if err != nil {
		return 0, err
	}
	if isDraining(t.m, group) {
		return t.drainFor(ctx, group)
	}
	meta.RemoveStatusCondition(&t.m.Status.Conditions, v1alpha1.ConditionDrained)
	if t.node == nil || machineOf(t.node) != t.m.Name {
		return 0, nil
	}
	_, cordoned := t.node.Annotations[v1alpha1.AnnotationCordoned]
	switch goes := goesLater(t.m, group); {
	case goes && !cordoned: // once: somebody may uncordon it
		err = t.cordon(ctx, t.node, t.m)
	case !goes && cordoned:
		err = t.uncordon(ctx, t.node, t.m)
	}
	switch {
	case apierrors.IsConflict(err): // the Node has changed since: what is to be done with it may be another thing
		return catchUp, nil
	case err != nil:
		return 0, t.failed(t.m, "DrainFailed", err)
	}
	return 0, nil
}

// drainFor drains the machine for the rollout of its group, or for a reboot that is to repair it, and says how that ended.
func (t *turn) drainFor(ctx context.Context, group *v1alpha1.NodeGroup) (time.Duration, error) {
	bound := t.drainTime(group)
	wait, err := t.drain(ctx, t.m, t.provider, bound, fateOf(t.m, group))
	switch reason := drainReason(t.m); {
	case reason != "" && reason != reasonDraining:
	case err != nil:
		t.cannotDrain(bound, fateOf(t.m, group), err)
	case wait == 0:
		t.drained(t.m, metav1.ConditionTrue, reasonDrained, "there is no node whose pods could go elsewhere")
	}
	if err != nil {
		return 0, t.failed(t.m, "DrainFailed", err)
	}
	return wait, nil
}

// cannotDrain says why the pods of a machine that lives cannot be evicted. That ends in time, too.
func (t *turn) cannotDrain(bound time.Duration, fate string, err error) {
	was := meta.FindStatusCondition(t.m.Status.Conditions, v1alpha1.ConditionDrained)
	if was == nil || t.Now().Before(t.drainEnds(was.LastTransitionTime.Time, bound)) {
		t.drained(t.m, metav1.ConditionFalse, reasonDraining, "its pods cannot be evicted: "+err.Error())
		return
	}
	t.drained(t.m, metav1.ConditionFalse, reasonTimedOut, fmt.Sprintf("its pods could not be evicted in %s, and %s: %v", bound, fate, err))
}

// isDraining reports whether the machine is one of those of its group that are being replaced, or rebooted to repair
// them.
func isDraining(m *v1alpha1.Machine, group *v1alpha1.NodeGroup) bool {
	if group == nil {
		return false
	}
	if repairReboots(m, group) {
		return true
	}
	status := progressOf(group)
	return status != nil && slices.Contains(status.Draining, m.Name)
}

// goesLater reports whether the machine is to take no more pods, because others are there for them that stay. A rollout
// that makes no additional machines has no others.
func goesLater(m *v1alpha1.Machine, group *v1alpha1.NodeGroup) bool {
	if group == nil {
		return false
	}
	status := progressOf(group)
	return status != nil && status.Phase == v1alpha1.RolloutUpgrade && group.Spec.EKS.UpdateConfig.UpdateStrategy != v1alpha1.StrategyMinimal && outdated(m, group)
}

// The values of the annotation of a Node that a rollout or a repair has cordoned: it has taken the Node out of load balancers, too, as
// EKS does, or somebody else had before.
const (
	cordonedAndOut = "rollout"
	cordonedAlone  = "rollout-cordon"
)

// cordon has a Node take no more pods, and no requests of load balancers. Unless its machine is being deleted, the Node
// says who has cordoned it: one that somebody else has cordoned stays so.
func (r parts) cordon(ctx context.Context, node *corev1.Node, m *v1alpha1.Machine) error {
	if node.Spec.Unschedulable {
		return nil
	}
	before := node.DeepCopy()
	node.Spec.Unschedulable = true
	if m.DeletionTimestamp.IsZero() {
		by := cordonedAlone
		if _, out := node.Labels[corev1.LabelNodeExcludeBalancers]; !out {
			by = cordonedAndOut
			metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelNodeExcludeBalancers, "true")
		}
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.AnnotationCordoned, by)
	}
	if err := r.cluster.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cordoning Node %s: %w", node.Name, err)
	}
	return nil
}

// uncordon has a Node take pods again that a rollout or a repair has cordoned. In a zone that is shifted away from, it does
// so when the zonal shift ends. It fails with a conflict if the Node has changed since it was read: where the shift has
// ended meanwhile, nobody would uncordon the Node.
func (r parts) uncordon(ctx context.Context, node *corev1.Node, m *v1alpha1.Machine) error {
	before := node.DeepCopy()
	if _, shifted := node.Annotations[v1alpha1.AnnotationZonalShift]; shifted {
		node.Annotations[v1alpha1.AnnotationZonalShift] = v1alpha1.NodeCordonedByShift
	} else {
		node.Spec.Unschedulable = false
	}
	if node.Annotations[v1alpha1.AnnotationCordoned] == cordonedAndOut {
		delete(node.Labels, corev1.LabelNodeExcludeBalancers)
	}
	delete(node.Annotations, v1alpha1.AnnotationCordoned)
	if err := r.cluster.Patch(ctx, node, lockedPatch(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("having Node %s take pods again: %w", node.Name, err)
	}
	r.recorder.Eventf(m, nil, corev1.EventTypeNormal, "NotReplaced", "Drain", "the rollout or the repair that it was drained for has ended: the machine stays, and takes pods")
	return nil
}
