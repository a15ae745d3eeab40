// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/plane/readiness"
)

// A rollout replaces the machines of a group that were not made for it. Package plan says what is next. The group's
// controller makes and deletes machines and says in its status how far that is, and which are to be drained; the
// machines' controller cordons and drains those, as it drains those that are deleted:
//
//	group: spec.rollout ──► more machines ──► status.rollout.phase: Upgrade ──► status.rollout.drainingMachines: X, Y       Drained is True ──► delete X ──► the next
//	machines:                                          └──► cordon all that are to go        └──► evict the pods of X and Y ──────┘
//
// All of it is in the objects, so a service that is killed is followed by one that goes on where it was. A rollout that
// fails or is stopped leaves the machines that there are, and those that were cordoned take pods again.

const (
	// rolloutPatience is the time that a rollout may take for a step: a new machine to become Ready, a machine to go.
	// Draining has a bound of its own.
	rolloutPatience = 20 * time.Minute
	// drainMore is how much longer than a drain may take a rollout waits for its outcome.
	drainMore = time.Minute
	// roomPatience is how long a rollout waits for an address of an additional machine, or for room on the host.
	roomPatience = time.Minute
	// rolloutAgain is how often it is looked whether that is over.
	rolloutAgain = 10 * time.Second
)

// EKS's codes of a rollout that has failed.
const (
	codeEviction = "PodEvictionFailure"
	codeCreation = "NodeCreationFailure"
)

// inRollout reports whether machines of the group are being replaced. A rollout that has ended does not begin again,
// whatever the group is changed to.
func inRollout(group *v1alpha1.NodeGroup) bool {
	rollout, status := group.Spec.Rollout, group.Status.Rollout
	if !group.DeletionTimestamp.IsZero() || rollout == nil || rollout.Stopped {
		return false
	}
	return status == nil || status.ID != rollout.ID || status.Code == "" && (status.Phase != v1alpha1.RolloutScaleDown || status.Outdated > 0)
}

// progressOf is how far the rollout is in which machines of the group are being replaced; nil if there is none.
func progressOf(group *v1alpha1.NodeGroup) *v1alpha1.NodeGroupRolloutStatus {
	if !inRollout(group) || group.Status.Rollout == nil || group.Status.Rollout.ID != group.Spec.Rollout.ID || group.Status.Rollout.Phase == v1alpha1.RolloutScaleDown {
		return nil
	}
	return group.Status.Rollout
}

// outdated reports whether the rollout of its group is to replace a machine.
func outdated(m *v1alpha1.Machine, group *v1alpha1.NodeGroup) bool {
	return m.Spec.Rollout != group.Spec.Rollout.ID && (!group.Spec.Rollout.KeepCurrent || stale(m, group))
}

// stale reports whether a machine is not as one that its group would make now.
func stale(m *v1alpha1.Machine, group *v1alpha1.NodeGroup) bool {
	return !equality.Semantic.DeepEqual(m.Spec.LaunchTemplate, group.Spec.Launched()) || ami.Release(m.Spec.ImageID).Minor() != group.Status.Version
}

// observeIn takes from machines what the plan of their group depends on.
func observeIn(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) []plan.Machine {
	observed := observeAll(machines)
	for i := range machines {
		observed[i].Outdated = observed[i].Warm && stale(&machines[i], group)
		observed[i].Repairing = repairReboots(&machines[i], group)
	}
	if !inRollout(group) {
		return observed
	}
	status := progressOf(group)
	for i := range machines {
		observed[i].Outdated = outdated(&machines[i], group)
		observed[i].Draining = status != nil && slices.Contains(status.Draining, machines[i].Name)
	}
	return observed
}

// rollout sets in the status of the group how far its rollout is, and returns the next step.
func (r *groups) rollout(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) (plan.Step, error) {
	desired := int(group.Spec.ScalingConfig.DesiredSize)
	wanted := group.Spec.Rollout
	if wanted == nil {
		group.Status.Rollout = nil
		return plan.Step{Size: desired}, nil
	}
	now := metav1.NewTime(r.Now().Truncate(time.Second))
	status := group.Status.Rollout
	if status == nil || status.ID != wanted.ID {
		status = &v1alpha1.NodeGroupRolloutStatus{ID: wanted.ID, StepTime: now}
		group.Status.Rollout = status
	}
	if !inRollout(group) {
		status.Draining = nil
		status.Returned = status.Returned || returns(group) && count(machines) <= desired
		return plan.Step{Size: desired}, nil
	}
	policy, err := r.policy(group)
	if err != nil {
		return plan.Step{}, err
	}
	observed := slices.DeleteFunc(observeIn(group, machines), func(m plan.Machine) bool { return m.Warm })
	step := plan.Rollout(desired, observed, plan.Phase(status.Phase), policy)
	before := status.DeepCopy()
	status.Phase, status.Outdated, status.Updated, status.Draining = v1alpha1.RolloutPhase(step.Phase), int32(step.Outdated), 0, nil //nolint:gosec // a group has 5,000 machines at most
	status.Total = max(status.Total, status.Outdated)
	for _, m := range observed {
		if m.Ready && !m.Outdated && !m.Deleting {
			status.Updated++
		}
	}
	for _, action := range step.Actions {
		status.Draining = append(status.Draining, action.Drain+action.Delete)
		if action.Drain != "" && !slices.Contains(before.Draining, action.Drain) {
			r.recorder.Eventf(group, nil, corev1.EventTypeNormal, "Replacing", "Drain", "machine %s is drained: %s", action.Drain, action.Reason)
		}
	}
	slices.Sort(status.Draining)
	if status.Phase != before.Phase || status.Outdated != before.Outdated || status.Updated != before.Updated || !slices.Equal(status.Draining, before.Draining) {
		status.StepTime = now
	}
	if code, message := r.failure(group, machines, step); code != "" {
		status.Code, status.Message, status.Draining = code, readiness.Shorten(message), nil
		r.recorder.Eventf(group, nil, corev1.EventTypeWarning, code, "Rollout", "%s", status.Message)
		return plan.Step{Size: desired, Outdated: step.Outdated}, nil
	}
	return step, nil
}

// policy is how a rollout replaces the machines of a group.
func (r *groups) policy(group *v1alpha1.NodeGroup) (plan.Policy, error) {
	usage, err := r.Usage()
	if err != nil {
		return plan.Policy{}, fmt.Errorf("looking at the subnets of the cluster's VPC: %w", err)
	}
	zones := map[string]bool{}
	named := r.subnetsOf(group)
	for _, subnet := range usage {
		if slices.Contains(named, v1alpha1.SubnetID(subnet.ID)) {
			zones[subnet.Zone] = true
		}
	}
	config := group.Spec.EKS.UpdateConfig
	return plan.Policy{
		MaxUnavailable: int(config.MaxUnavailable), Percentage: int(config.MaxUnavailablePercentage), Zones: len(zones),
		Minimal: config.UpdateStrategy == v1alpha1.StrategyMinimal, Force: group.Spec.Rollout.Force,
	}, nil
}

// failure says why the rollout of a group fails at a step, in EKS's word and in a sentence; "" if it goes on.
func (r *groups) failure(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, step plan.Step) (code, message string) {
	status := group.Status.Rollout
	ready := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionReady)
	waited := r.Now().Sub(r.since(status.StepTime.Time))
	switch {
	case step.Stuck != "":
		return codeEviction, fmt.Sprintf("the pods of machine %s are not gone: %s", step.Stuck, drainedMessage(machines, step.Stuck))
	case len(status.Draining) > 0 && waited >= r.drainTime(group)+drainMore:
		return codeEviction, fmt.Sprintf("nothing has come of draining machine %s for %v: %s", status.Draining[0], r.drainTime(group)+drainMore, drainedMessage(machines, status.Draining[0]))
	case step.Phase == plan.ScaleDown || len(status.Draining) > 0:
	case waited >= roomPatience && ready != nil && ready.Reason == reasonFull:
		return reasonFull, fmt.Sprintf("no room for a new machine for %v: %s", roomPatience, ready.Message)
	case waited >= roomPatience && ready != nil && ready.Reason == hostroom.Code:
		return codeCreation, fmt.Sprintf("no room for a new machine for %v: %s", roomPatience, ready.Message)
	case waited >= rolloutPatience:
		return codeCreation, fmt.Sprintf("nothing has come of it for %v: %s", rolloutPatience, cmp.Or(trouble(machines), notJoined(machines, r.Now()), aboutLeaving(machines), "no new machine is Ready, and none says why"))
	}
	return "", ""
}

// aboutLeaving names a machine that is being deleted, and what it says.
func aboutLeaving(machines []v1alpha1.Machine) string {
	for i := range machines {
		if m := &machines[i]; !alive(*m) {
			said := ""
			if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
				said = ": " + ready.Message
			}
			return fmt.Sprintf("machine %s is not gone%s", m.Name, said)
		}
	}
	return ""
}

// drainedMessage is what is said of the pods of a machine.
func drainedMessage(machines []v1alpha1.Machine, name string) string {
	for i := range machines {
		if condition := meta.FindStatusCondition(machines[i].Status.Conditions, v1alpha1.ConditionDrained); machines[i].Name == name && condition != nil {
			return condition.Message
		}
	}
	return "its pods are about to be evicted"
}

// sayRollout says how far the rollout of a group is, and what it waits for.
func sayRollout(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) string {
	status := group.Status.Rollout
	if status.Phase == v1alpha1.RolloutScaleUp {
		text := "additional machines are made"
		if made := group.Status.Replicas - status.Outdated; made > 0 {
			text = readiness.ReadyOf(status.Updated, made, "additional machine", "additional machines")
		}
		return fmt.Sprintf("%s: %s; to be replaced: %s", status.Phase, text, machinesOf(status.Outdated))
	}
	parts := []string{fmt.Sprintf("%s: %d of %s replaced", status.Phase, status.Total-status.Outdated, machinesOf(status.Total)), areReady(group.Status.ReadyReplicas, group.Status.Replicas)}
	for _, name := range status.Draining {
		parts = append(parts, name+": "+drainedMessage(machines, name))
	}
	return strings.Join(parts, "; ")
}

// replace deletes the machines of a group that its rollout has drained, and reports whether there was one.
func (r *groups) replace(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, actions []plan.Action) (bool, error) {
	replaced := false
	for _, action := range actions {
		if action.Delete == "" {
			continue
		}
		replaced = true
		action.Reason = fmt.Sprintf("rollout %s replaces it, and %s", group.Spec.Rollout.ID, action.Reason)
		if err := (scaler{r, group}).end(ctx, machines, action); err != nil {
			return true, err
		}
	}
	return replaced, nil
}
