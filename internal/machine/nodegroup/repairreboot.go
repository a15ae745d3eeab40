// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/power"
	"muster.dev/muster/internal/machine/repair"
)

// isRebooting reports whether a machine is among those that are rebooted to repair them.
func isRebooting(name string, rebooting []v1alpha1.RepairReboots) bool {
	return slices.ContainsFunc(rebooting, func(r v1alpha1.RepairReboots) bool { return r.Machine == name })
}

// rebootingOf are the machines of a group that are rebooted to repair them.
func rebootingOf(group *v1alpha1.NodeGroup) []v1alpha1.RepairReboots {
	if group.Status.Repair == nil {
		return nil
	}
	return group.Status.Repair.Rebooting
}

// repairReboots reports whether the machine is one of those of its group that are rebooted to repair them.
func repairReboots(m *v1alpha1.Machine, group *v1alpha1.NodeGroup) bool {
	return group != nil && group.DeletionTimestamp.IsZero() && isRebooting(m.Name, rebootingOf(group))
}

// reboots has machines rebooted whose pods are gone, or did not go in time, and returns the reboots that are not over.
func (r *groups) reboots(ctx context.Context, group *v1alpha1.NodeGroup, began []v1alpha1.RepairReboots, machines []v1alpha1.Machine, nodes map[string]*corev1.Node) ([]v1alpha1.RepairReboots, error) {
	var left []v1alpha1.RepairReboots
	for _, reboot := range began {
		i := slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return m.Name == reboot.Machine })
		if i < 0 || !alive(machines[i]) || power.IsStopped(&machines[i]) {
			continue
		}
		m := &machines[i]
		if over, how := rebootOver(m, reboot, nodes[m.Name], r.since(reboot.Since.Time).Add(r.drainTime(group)+drainMore+2*repair.JoinPatience), r.Now()); over {
			r.recorder.Eventf(group, nil, corev1.EventTypeNormal, "Rebooted", "Repair", "machine %s was rebooted to repair it: %s", m.Name, how)
			continue
		}
		left = append(left, reboot)
		if drainReason(m) != reasonDrained && drainReason(m) != reasonTimedOut || m.Spec.Reboots >= reboot.Reboots {
			continue
		}
		asked := m.DeepCopy()
		asked.Spec.Reboots = reboot.Reboots // a number, not one more: repeated, it is the same reboot
		if err := r.management.Patch(ctx, asked, client.MergeFrom(m)); client.IgnoreNotFound(err) != nil {
			return left, fmt.Errorf("rebooting machine %s: %w", m.Name, err)
		}
	}
	return left, nil
}

// rebootOver reports whether the reboot of a machine is over, and how it ended. A reboot that has come to nothing by
// a moment ends then, too, such as that of a machine that does not boot: no other machine of its group would be repaired
// otherwise, nor this one replaced.
func rebootOver(m *v1alpha1.Machine, reboot v1alpha1.RepairReboots, node *corev1.Node, ends, now time.Time) (over bool, how string) {
	if now.After(ends) {
		return true, "nothing has come of it since " + reboot.Since.UTC().Format(time.RFC3339)
	}
	running := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRunning)
	if m.Status.Reboots < reboot.Reboots || running == nil || running.Status != metav1.ConditionTrue {
		return false, ""
	}
	up := running.LastTransitionTime.Time
	if node != nil {
		if ready := readyOf(node); ready.Status == corev1.ConditionTrue && !ready.LastHeartbeatTime.Time.Before(up) {
			return true, "its node is Ready"
		}
	}
	return now.After(up.Add(repair.JoinPatience)), fmt.Sprintf("its node is not Ready %v later", repair.JoinPatience)
}
