// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/repair"
	"muster.dev/muster/internal/plane/readiness"
)

// Node auto repair. Package repair says which machines are repaired, and why not yet. A machine that is replaced is
// deleted, so it is drained and goes as any other, and its group makes another at once. A machine that is rebooted is
// drained by the machines' controller, while status.repair.rebooting names it:
//
//	Node: bad for long enough ──► Replace: the machine is deleted ──► drained, terminated; the group makes another
//	                         └──► Reboot: status.repair.rebooting ──► drained ──► spec.reboots ──► Ready ──► takes pods again
//
// A service that is killed in between goes on from the objects: the number of the reboot is in the status before the
// machine is asked, so it reboots once.

const (
	// rebootAgain is how often it is looked how far a reboot is, and heldAgain whether a repair that is held back may begin.
	rebootAgain, heldAgain = 2 * time.Second, 10 * time.Second
	// mostUnhealthy is how many unhealthy machines the status of a group names.
	mostUnhealthy = 20
)

// endSome deletes the machines that go whatever the size of the group is, and reports whether there was one: marked and
// stopped ones, and those that are replaced to repair them.
func (r *groups) endSome(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) (bool, error) {
	ended, err := r.endMarked(ctx, group, machines)
	if err != nil || ended || !group.DeletionTimestamp.IsZero() {
		return ended, err
	}
	return r.repair(ctx, group, machines)
}

// repair begins the repairs that are due, takes reboots a step further, notes in the status of the group what it found,
// and reports whether it deleted a machine.
func (r *groups) repair(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) (bool, error) {
	before := group.Status.Repair.DeepCopy()
	if before == nil {
		before = &v1alpha1.NodeGroupRepairStatus{}
	}
	if !group.Spec.EKS.Repairs() && len(before.Rebooting) == 0 {
		group.Status.Repair = nil
		return false, nil
	}
	nodes, err := r.nodesByMachine(ctx, machines)
	if err != nil {
		return false, err
	}
	rebooting, err := r.reboots(ctx, group, before.Rebooting, machines, nodes)
	if err != nil {
		return false, err
	}
	policy, err := r.repairPolicy(ctx, group)
	if err != nil {
		return false, err
	}
	decision := repair.Plan(policy, observeRepairs(group, machines, nodes, rebooting, r.Now()), r.Now())
	if len(decision.Begin) > 0 { // the caches may be behind
		if machines, _, err = r.list(ctx, r.managementLive, group); err != nil {
			return false, err
		}
		if err := r.readAnew(ctx, decision.Begin, machines, nodes); err != nil {
			return false, err
		}
		decision = repair.Plan(policy, observeRepairs(group, machines, nodes, rebooting, r.Now()), r.Now())
	}
	ended := false
	for _, f := range decision.Begin {
		i := slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return m.Name == f.Machine })
		if f.Action == v1alpha1.RepairReboot {
			rebooting = append(rebooting, v1alpha1.RepairReboots{Machine: f.Machine, Reboots: machines[i].Spec.Reboots + 1, Since: metav1.NewTime(r.Now().Truncate(time.Second))})
		} else {
			ended = true
			if err := r.endBecause(ctx, &machines[i], repairCause(r.Now())); err != nil {
				return ended, err
			}
		}
		r.recorder.Eventf(group, nil, corev1.EventTypeWarning, "Repairing", "Repair", "%s", readiness.Shorten(fmt.Sprintf("%s of machine %s: %s", f.Action, f.Machine, sayCondition(f.Condition))))
	}
	slices.SortFunc(rebooting, func(a, b v1alpha1.RepairReboots) int { return cmp.Compare(a.Machine, b.Machine) })
	group.Status.Repair = repairStatus(decision, rebooting)
	if held := group.Status.Repair; repair.Paused(held.HeldReason) {
		held.HeldMessage = readiness.Shorten(r.withCause(Symptom{Source: fromGroup, Code: "Repair/" + held.HeldReason, Text: held.HeldMessage}))
	}
	r.tellRepairs(group, before)
	return ended, nil
}

// repairStatus is the status of a decision.
func repairStatus(decision repair.Decision, rebooting []v1alpha1.RepairReboots) *v1alpha1.NodeGroupRepairStatus {
	status := &v1alpha1.NodeGroupRepairStatus{
		Unhealthy: int32(len(decision.Unhealthy)), //nolint:gosec // a group has 5,000 machines at most
		Rebooting: rebooting, HeldReason: decision.Held, HeldMessage: readiness.Shorten(decision.Message),
	}
	first := slices.Clone(decision.Unhealthy)
	slices.SortStableFunc(first, func(a, b repair.Finding) int { return a.Due.Compare(b.Due) })
	for _, f := range first[:min(len(first), mostUnhealthy)] {
		status.Machines = append(status.Machines, v1alpha1.UnhealthyMachine{
			Machine: f.Machine, Condition: f.Type, Reason: f.Reason, Since: metav1.NewTime(f.Since.Truncate(time.Second)), Action: f.Action, Due: metav1.NewTime(f.Due.Truncate(time.Second)),
		})
	}
	return status
}

// tellRepairs makes Events of what is new in the status of a group.
func (r *groups) tellRepairs(group *v1alpha1.NodeGroup, before *v1alpha1.NodeGroupRepairStatus) {
	status := group.Status.Repair
	for _, m := range status.Machines {
		known := slices.ContainsFunc(before.Machines, func(o v1alpha1.UnhealthyMachine) bool {
			return o.Machine == m.Machine && o.Condition == m.Condition && o.Reason == m.Reason
		})
		if !known {
			r.recorder.Eventf(group, nil, corev1.EventTypeWarning, "NodeUnhealthy", "Repair", "the node of machine %s has the condition %s with reason %s since %s; what comes of it after %s: %s",
				m.Machine, m.Condition, m.Reason, m.Since.UTC().Format(time.RFC3339), m.Due.UTC().Format(time.RFC3339), m.Action)
		}
	}
	switch {
	case repair.Paused(status.HeldReason) && status.HeldReason != before.HeldReason:
		r.recorder.Eventf(group, nil, corev1.EventTypeWarning, "RepairPaused", "Repair", "%s: %s", status.HeldReason, status.HeldMessage)
	case repair.Paused(before.HeldReason) && !repair.Paused(status.HeldReason):
		r.recorder.Eventf(group, nil, corev1.EventTypeNormal, "RepairResumed", "Repair", "repairs are not paused any more for %s", before.HeldReason)
	}
}

// repairWait is when repairs of a group are to be looked at again; 0 if a change that matters is heard of.
func repairWait(group *v1alpha1.NodeGroup, now time.Time) time.Duration {
	status := group.Status.Repair
	if status == nil {
		return 0
	}
	var wait time.Duration
	for _, m := range status.Machines {
		wait = soonest(wait, m.Due.Sub(now)+time.Second) // times have whole seconds
	}
	if len(status.Rebooting) > 0 {
		wait = soonest(wait, rebootAgain)
	}
	if status.HeldReason != "" {
		wait = soonest(wait, heldAgain)
	}
	return wait
}

// repairCause is why a machine is terminated that is replaced to repair it, in the words of Auto Scaling.
func repairCause(now time.Time) string {
	return fmt.Sprintf("At %s an instance was taken out of service in response to a user health-check.", now.UTC().Format(time.RFC3339))
}

// sayCondition is a bad condition in one line.
func sayCondition(c repair.Condition) string {
	return fmt.Sprintf("%s is bad since %s: %s: %s", c.Type, c.Since.UTC().Format(time.RFC3339), c.Reason, c.Message)
}
