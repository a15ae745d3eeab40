// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/plane/readiness"
)

const (
	// drainAgain is how often it is looked whether pods are gone, and blockedAgain how often a protected pod is asked
	// for again, as often as kubectl drain does.
	drainAgain   = time.Second
	blockedAgain = 5 * time.Second
	// graceMore is how much longer than its grace period a pod is waited for: the kubelet kills it at the end of that,
	// and says so.
	graceMore = 10 * time.Second
	// onlyForced says what becomes of a machine that a rollout cannot drain.
	onlyForced = "the machine is replaced then only if the rollout is forced"
)

// Reasons of the condition Drained.
const (
	reasonDraining = "Draining"
	reasonDrained  = "Drained"
	reasonTimedOut = "TimedOut"
)

// drain cordons the node of a machine that is being deleted or replaced and evicts its pods, while all that it needs to
// end them is still its own. It returns when to look again, or 0 when nothing keeps the machine any longer: its pods
// are gone, nobody is there who could end them, or the time is up. When it began is in the condition Drained, so
// another process goes on where this one was killed.
func (r *machines) drain(ctx context.Context, m *v1alpha1.Machine, provider machine.Provider, bound time.Duration, fate string) (time.Duration, error) {
	was := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained)
	if was != nil && was.Reason != reasonDraining {
		return 0, nil
	}
	node, err := r.toDrain(ctx, m, provider)
	if err != nil || node == nil {
		return 0, err
	}
	now := r.Now()
	began := now
	if was != nil {
		began = was.LastTransitionTime.Time
	}
	ends, err := r.clusterEnds(ctx)
	if err != nil {
		return 0, err
	}
	last := false
	if !ends {
		if last, err = r.isLast(ctx, m); err != nil {
			return 0, err
		}
	}
	left, blocked, err := r.evictAll(ctx, node, ends || last)
	if err != nil {
		return 0, err
	}
	over, leaves := r.drainEnds(began, bound), !m.DeletionTimestamp.IsZero()
	switch {
	case len(left) == 0:
		message := "no pod that could go elsewhere is left on the node"
		if last && was != nil { // an Update that looks only now hears of it, too
			message += "; " + readiness.LastNode
		}
		r.drained(m, metav1.ConditionTrue, reasonDrained, message)
		if was != nil {
			r.recorder.Eventf(m, nil, corev1.EventTypeNormal, reasonDrained, "Drain", "the pods of node %s are gone", node.Name)
		}
		return 0, nil
	case !now.Before(over):
		message := fmt.Sprintf("%s after %s, and %s", sayLeft(left, blocked), bound, fate)
		r.drained(m, metav1.ConditionFalse, reasonTimedOut, message)
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, "DrainTimedOut", "Drain", "%s", readiness.Shorten(message))
		return 0, nil
	}
	message := r.draining(m, now, sayLeft(left, blocked), fmt.Sprintf("%s at %s", fate, over.UTC().Format(time.TimeOnly+"Z")), last)
	switch {
	case was == nil && last:
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, reasonLastNode, "Drain", "%s", readiness.Shorten(fmt.Sprintf("deleting the pods of node %s: %s", node.Name, message)))
	case was == nil:
		r.recorder.Eventf(m, nil, corev1.EventTypeNormal, reasonDraining, "Drain", "%s", readiness.Shorten(fmt.Sprintf("evicting the pods of node %s: %s", node.Name, message)))
	case was.Message != readiness.Shorten(message) && blocked.why != "":
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, "DrainBlocked", "Drain", "%s", readiness.Shorten(message))
	}
	r.drained(m, metav1.ConditionFalse, reasonDraining, message)
	if leaves {
		r.judge(m, v1alpha1.MachineTerminating, reasonDraining, "evicting its pods: "+message)
	}
	if blocked.why != "" {
		return min(blockedAgain, over.Sub(now)), nil
	}
	return min(drainAgain, over.Sub(now)), nil
}

// clusterEnds reports whether the cluster is being deleted.
func (r *machines) clusterEnds(ctx context.Context) (bool, error) {
	cluster := &v1alpha1.Cluster{}
	err := r.management.Get(ctx, client.ObjectKey{Namespace: r.namespace(), Name: r.namespace()}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading the cluster: %w", err)
	}
	return err == nil && !cluster.DeletionTimestamp.IsZero(), nil
}

// toDrain returns the Node of a machine if there are pods to end on it.
func (r *machines) toDrain(ctx context.Context, m *v1alpha1.Machine, provider machine.Provider) (*corev1.Node, error) {
	if !m.Spec.TakesPods() || m.Status.NodeName == "" {
		return nil, nil //nolint:nilnil // a missing Node is not an error
	}
	instance, err := provider.Get(ctx, m.Name)
	if errors.Is(err, machine.ErrNotFound) || err == nil && instance.State != machine.Running {
		return nil, nil //nolint:nilnil // its pods have ended
	}
	if err != nil && !errors.Is(err, machine.ErrDamaged) { // with a damaged record it may run, and is to go
		return nil, fmt.Errorf("asking the provider for the instance: %w", err)
	}
	node := &corev1.Node{}
	err = r.clusterLive.Get(ctx, client.ObjectKey{Name: m.Status.NodeName}, node)
	if apierrors.IsNotFound(err) || err == nil && machineOf(node) != m.Name {
		return nil, nil //nolint:nilnil // a missing Node is not an error
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Node: %w", err)
	}
	if err := r.cordon(ctx, node, m); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing Node is not an error
	} else if err != nil {
		return nil, err
	}
	return node, nil
}

// drainEnds is when a drain that began at a moment is over. Pods that ended with the host have some time to come back after
// this service began, as budgets give none away before.
func (r parts) drainEnds(began time.Time, bound time.Duration) time.Time {
	over := began.Add(bound)
	if least := r.began.Add(min(bound, lateAfter)); over.Before(least) {
		return least
	}
	return over
}

// fateOf says what becomes of a machine whose pods do not go in time.
func fateOf(m *v1alpha1.Machine, group *v1alpha1.NodeGroup) string {
	switch {
	case !m.DeletionTimestamp.IsZero():
		return "the machine is terminated all the same"
	case repairReboots(m, group):
		return "the machine is rebooted all the same"
	case m.Spec.WarmPool != "":
		return "the machine returns to the warm pool all the same"
	}
	return onlyForced
}

// drainTime is how long a machine of a group waits for its pods.
func (r parts) drainTime(group *v1alpha1.NodeGroup) time.Duration {
	if group == nil || group.Spec.DrainTimeout == nil {
		return r.DrainTime
	}
	return min(group.Spec.DrainTimeout.Duration, r.DrainTime)
}

// drained sets the condition Drained. Its last transition is when draining began, for as long as that goes on.
func (r *machines) drained(m *v1alpha1.Machine, status metav1.ConditionStatus, reason, message string) {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionDrained, Status: status, Reason: reason, Message: readiness.Shorten(message), ObservedGeneration: m.Generation,
		LastTransitionTime: metav1.NewTime(r.Now().Truncate(time.Second)),
	}
	meta.SetStatusCondition(&m.Status.Conditions, condition)
}
