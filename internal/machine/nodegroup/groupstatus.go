// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/machine/power"
	"muster.dev/muster/internal/plane/readiness"
)

// observe takes from a Machine what a group's plan and status depend on.
func observe(m *v1alpha1.Machine) plan.Machine {
	return plan.Machine{
		Name:     m.Name,
		Zone:     zoneOf(m),
		Created:  m.CreationTimestamp.Time,
		Joined:   m.Status.Phase == v1alpha1.MachineReady || m.Status.Phase == v1alpha1.MachineNotReady || joinlog.Has(m.Status.Join, v1alpha1.StepNodeRegistered),
		Ready:    m.Status.Phase == v1alpha1.MachineReady,
		Stopped:  power.IsStopped(m),
		Deleting: !m.DeletionTimestamp.IsZero(),
		Drained:  drainReason(m) == reasonDrained,
		TimedOut: drainReason(m) == reasonTimedOut,
		Drains:   drainReason(m) != "",
		Warm:     m.Spec.WarmPool != "",
		Prepared: m.Status.Phase == v1alpha1.MachineWarmRunning || m.Status.Phase == v1alpha1.MachineWarmStopped,
	}
}

// zoneOf is the availability zone of a machine that has been launched; empty before.
func zoneOf(m *v1alpha1.Machine) string {
	zone, _, _ := strings.Cut(strings.TrimPrefix(m.Status.ProviderID, "aws:///"), "/")
	return zone
}

// drainReason says how far the draining of a machine is.
func drainReason(m *v1alpha1.Machine) string {
	if condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained); condition != nil {
		return condition.Reason
	}
	return ""
}

func observeAll(machines []v1alpha1.Machine) []plan.Machine {
	observed := make([]plan.Machine, 0, len(machines))
	for i := range machines {
		observed = append(observed, observe(&machines[i]))
	}
	return observed
}

// sum fills in the status of a group from its machines and what went wrong with them, if anything.
func (r *groups) sum(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, failure error) {
	status := &group.Status
	status.ObservedGeneration = group.Generation
	status.Selector = labels.Set{v1alpha1.LabelCluster: group.Namespace, v1alpha1.LabelNodeGroup: group.Name}.String()
	var leaving, stopped int32
	if machines != nil || failure == nil {
		leaving, stopped = countInto(status, group, machines)
	}
	desired, more := group.Spec.ScalingConfig.DesiredSize, additional(group, machines)
	even, failure := sayEven(more, failure)
	ready := metav1.ConditionFalse
	var reason, message string
	var p *problem
	var role *RoleProblem
	switch {
	case errors.As(failure, &role):
		reason, message = role.Reason, failure.Error()
	case errors.As(failure, &p):
		reason, message = p.reason, p.message
	case failure != nil:
		reason, message = "Failed", failure.Error()
	case !group.DeletionTimestamp.IsZero():
		reason, message = readiness.ReasonDeleting, fmt.Sprintf("waiting for %s to go%s", machinesOf(int32(len(machines))), aboutLast(machines)) //nolint:gosec // a group has 5,000 at most
	case trouble(machines) != "":
		// The word of EKS for it: instances are there, and they do not become nodes.
		reason, message = codeCreation, areReady(status.ReadyReplicas, desired)+"; "+trouble(machines)
	case notJoined(machines, r.Now()) != "":
		reason, message = codeCreation, areReady(status.ReadyReplicas, desired)+"; "+notJoined(machines, r.Now())
	case r.keptOut(machines) != "":
		reason, message = "AccessDenied", areReady(status.ReadyReplicas, desired)+"; "+r.keptOut(machines)
	case progressOf(group) != nil:
		reason, message = readiness.ReasonScaling, sayRollout(group, machines)
	case status.Replicas-more != desired:
		reason, message = readiness.ReasonScaling, readiness.Of(status.Replicas, desired, "machine", "machines")
	case status.ReadyReplicas+stopped < desired:
		reason, message = readiness.ReasonJoining, areReady(status.ReadyReplicas, desired)
	case stopped > 0:
		ready, reason, message = metav1.ConditionTrue, readiness.ReasonReady, fmt.Sprintf("%s; stopped: %s", areReady(status.ReadyReplicas, desired), machinesOf(stopped))
	case leaving > 0:
		ready, reason, message = metav1.ConditionTrue, readiness.ReasonReady, fmt.Sprintf("%s; going: %s%s", areReady(desired, desired)+even, machinesOf(leaving), aboutLast(machines))
	default:
		ready, reason, message = metav1.ConditionTrue, readiness.ReasonReady, areReady(desired, desired)+even+sayWarm(group)
	}
	if ready == metav1.ConditionFalse {
		message = r.withCause(Symptom{Source: fromGroup, Code: v1alpha1.ConditionReady + "/" + reason, Text: message})
	}
	was := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if (reason == reasonFull || reason == codeCreation) && (was == nil || was.Reason != reason) {
		r.recorder.Eventf(group, nil, corev1.EventTypeWarning, reason, "Create", "%s", readiness.Shorten(message))
	}
	setReady(&status.Conditions, r.Now(), group.Generation, ready, reason, message)
}

// countInto counts the machines of a group in its status, and returns how many go and how many are stopped.
func countInto(status *v1alpha1.NodeGroupStatus, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) (leaving, stopped int32) {
	status.Replicas, status.ReadyReplicas, status.UpdatedReplicas, status.WarmReplicas, status.WarmReadyReplicas = 0, 0, 0, 0, 0
	for i, machine := range observeAll(machines) {
		if machine.Deleting {
			leaving++
			continue
		}
		if machine.Warm {
			status.WarmReplicas++
			if machine.Prepared {
				status.WarmReadyReplicas++
			}
			continue
		}
		status.Replicas++
		if updated(&machines[i], group) {
			status.UpdatedReplicas++
		}
		switch {
		case machine.Ready:
			status.ReadyReplicas++
		case machine.Stopped:
			stopped++
		}
	}
	return leaving, stopped
}

// areReady says how many machines of a group are Ready, and machinesOf counts some.
func areReady(ready, desired int32) string {
	return readiness.ReadyOf(ready, desired, "machine", "machines")
}

func machinesOf(n int32) string { return readiness.Of(n, n, "machine", "machines") }

// refusedFor is how long a machine is refused before that is an issue of its group: an entry that was just made takes a
// moment to be heard of.
const refusedFor = time.Minute

// keptOut says which machine the cluster has refused for so long, and why; "" if none.
func (r *groups) keptOut(machines []v1alpha1.Machine) string {
	for i := range machines {
		m := &machines[i]
		if refusal := refusalOf(m); refusal != nil && alive(*m) && !r.Now().Before(refusal.LastTransitionTime.Add(refusedFor)) {
			return m.Name + ": " + refusal.Message
		}
	}
	return ""
}

// refusalOf is the condition of a machine that the cluster does not let in and that is not Ready; nil otherwise.
func refusalOf(m *v1alpha1.Machine) *metav1.Condition {
	identity := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionIdentity)
	if identity == nil || identity.Status != metav1.ConditionFalse || m.Status.Phase == v1alpha1.MachineReady {
		return nil
	}
	return identity
}

// trouble is what the first of the machines reports that does not become a node, and how many others do.
func trouble(machines []v1alpha1.Machine) string {
	first, others := "", 0
	for i := range machines {
		switch text := troubled(&machines[i]); {
		case text == "" || !machines[i].DeletionTimestamp.IsZero():
		case first == "":
			first = text
		default:
			others++
		}
	}
	if others > 0 {
		first += fmt.Sprintf(" (and %d more)", others)
	}
	return first
}
