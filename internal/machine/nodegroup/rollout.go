// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/plane/readiness"
)

// A rollout replaces the machines of a group that were not made for it. Package plan says what is next. The group's
// controller makes and deletes machines and names in its status the one to be drained; the machines' controller drains
// that one, as it drains those that are deleted:
//
//	group: spec.rollout ──► one machine more ──► status.rollout.draining: X          Drained is True ──► delete X ──► it is gone ──► the next
//	machine X:                                            └──► cordon, evict ──────────────┘
//
// All of it is in the objects, so a service that is killed is followed by one that goes on where it was. A rollout that
// fails or is stopped leaves the machines that there are, and the one that was being drained takes pods again.

const (
	// rolloutPatience is the time that a rollout may take for a step: a new machine to become Ready, a machine to go.
	// Draining has a bound of its own.
	rolloutPatience = 20 * time.Minute
	// rolloutAgain is how often it is looked whether that is over.
	rolloutAgain = 10 * time.Second
)

// EKS's codes of a rollout that has failed.
const (
	codeEviction = "PodEvictionFailure"
	codeCreation = "NodeCreationFailure"
)

// inRollout reports whether machines of the group are being replaced.
func inRollout(group *v1alpha1.NodeGroup) bool {
	rollout, status := group.Spec.Rollout, group.Status.Rollout
	return group.DeletionTimestamp.IsZero() && rollout != nil && !rollout.Stopped && (status == nil || status.ID != rollout.ID || status.Code == "")
}

// isDraining reports whether the machine is the one of its group that is being replaced now.
func isDraining(m *v1alpha1.Machine, group *v1alpha1.NodeGroup) bool {
	return group != nil && inRollout(group) && group.Status.Rollout != nil && group.Status.Rollout.ID == group.Spec.Rollout.ID && group.Status.Rollout.Draining == m.Name
}

// observeIn takes from machines what the plan of their group depends on.
func observeIn(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) []plan.Machine {
	observed := observeAll(machines)
	if !inRollout(group) {
		return observed
	}
	for i := range machines {
		observed[i].Outdated = machines[i].Spec.Rollout != group.Spec.Rollout.ID
	}
	return observed
}

// rollout sets in the status of the group how far its rollout is, and returns the next step.
func (r *groups) rollout(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) plan.Step {
	desired := int(group.Spec.ScalingConfig.DesiredSize)
	wanted := group.Spec.Rollout
	if wanted == nil {
		group.Status.Rollout = nil
		return plan.Step{Size: desired}
	}
	now := metav1.NewTime(r.Now().Truncate(time.Second))
	status := group.Status.Rollout
	if status == nil || status.ID != wanted.ID {
		status = &v1alpha1.NodeGroupRolloutStatus{ID: wanted.ID, StepTime: now}
		group.Status.Rollout = status
	}
	if !inRollout(group) {
		status.Draining = ""
		return plan.Step{Size: desired}
	}
	step := plan.Rollout(desired, observeIn(group, machines), status.Draining, wanted.Force)
	if outdated := int32(step.Outdated); outdated != status.Outdated || step.Drain != status.Draining { //nolint:gosec // a group has 5,000 machines at most
		status.Outdated, status.Draining, status.StepTime = outdated, step.Drain, now
	}
	switch {
	case step.Outdated == 0:
	case step.Stuck:
		r.giveUp(group, codeEviction, fmt.Sprintf("the pods of machine %s are not gone: %s", step.Drain, drainedMessage(machines, step.Drain)))
	case step.Drain == "" && r.Now().Sub(status.StepTime.Time) >= rolloutPatience:
		r.giveUp(group, codeCreation, fmt.Sprintf("no new machine is Ready after %v: %s", rolloutPatience, cmp.Or(trouble(machines), "none says why")))
	}
	if status.Code != "" {
		return plan.Step{Size: desired, Outdated: step.Outdated}
	}
	return step
}

func (r *groups) giveUp(group *v1alpha1.NodeGroup, code, message string) {
	status := group.Status.Rollout
	status.Code, status.Message, status.Draining = code, readiness.Shorten(message), ""
	r.recorder.Eventf(group, nil, corev1.EventTypeWarning, code, "Rollout", "%s", readiness.Shorten(message))
}

// drainedMessage is what is said of the pods of a machine.
func drainedMessage(machines []v1alpha1.Machine, name string) string {
	for i := range machines {
		if condition := meta.FindStatusCondition(machines[i].Status.Conditions, v1alpha1.ConditionDrained); machines[i].Name == name && condition != nil {
			return condition.Message
		}
	}
	return "nothing is said of them"
}

// replace deletes the machine that a rollout has drained.
func (r *groups) replace(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, name string) error {
	if !slices.ContainsFunc(machines, func(m v1alpha1.Machine) bool { return m.Name == name && alive(m) }) {
		return nil
	}
	return r.carryOut(ctx, group, machines, plan.Action{Delete: name, Reason: fmt.Sprintf("rollout %s replaces it", group.Spec.Rollout.ID)})
}

// evacuate drains a machine that is being replaced, while it lives. If the rollout ends before the machine is replaced,
// its node takes pods again.
func (r *machines) evacuate(ctx context.Context, m *v1alpha1.Machine, provider machine.Provider, node *corev1.Node, group *v1alpha1.NodeGroup) (time.Duration, error) {
	if isDraining(m, group) {
		wait, err := r.drain(ctx, m, provider)
		if err == nil && wait == 0 && meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained) == nil {
			r.drained(m, metav1.ConditionTrue, reasonDrained, "there is no node whose pods could go elsewhere")
		}
		return wait, err
	}
	if meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained) == nil {
		return 0, nil
	}
	if node != nil && node.Spec.Unschedulable {
		before := node.DeepCopy()
		node.Spec.Unschedulable = false
		if err := r.cluster.Patch(ctx, node, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("having Node %s take pods again: %w", node.Name, err)
		}
	}
	meta.RemoveStatusCondition(&m.Status.Conditions, v1alpha1.ConditionDrained)
	r.recorder.Eventf(m, nil, corev1.EventTypeNormal, "NotReplaced", "Drain", "the rollout of its node group has ended: the machine stays, and takes pods")
	return 0, nil
}
