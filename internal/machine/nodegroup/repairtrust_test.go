// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/repair"
)

// A Node says of its conditions what it likes: without a time, as people patch them, or with one that nothing has come to. The
// condition counts from when it was seen first, and the status of the group can be written, which has to have a time of four-digit years.
func TestRepairOfConditionsWithoutATime(t *testing.T) {
	for name, at := range map[string]metav1.Time{
		"no time":         {},
		"at the very end": metav1.NewTime(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)),
	} {
		t.Run(name, func(t *testing.T) {
			w := sickWorld(t, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", nil)
			node := w.node(t)
			for i := range node.Status.Conditions {
				if node.Status.Conditions[i].Type == v1alpha1.NodeKernelReady {
					node.Status.Conditions[i].LastTransitionTime = at
				}
			}
			if err := w.cluster.Status().Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			first := w.now
			for _, after := range []time.Duration{0, 15 * time.Minute, 30*time.Minute - time.Second} {
				w.now = first.Add(after)
				mustReconcile(t, w.groups(), "workers")
				if old, fresh := w.all(t); old == nil || fresh != nil {
					t.Fatalf("it is repaired %v after it was seen", after)
				}
				if found := w.group(t).Status.Repair.Machines[0]; !found.Since.Time.Equal(first) || !found.Due.Time.Equal(first.Add(30*time.Minute)) {
					t.Fatalf("after %v: %+v", after, found)
				}
			}
			w.now = first.Add(30 * time.Minute)
			mustReconcile(t, w.groups(), "workers")
			if old, _ := w.all(t); old != nil {
				t.Error("it is not repaired")
			}
		})
	}
}

// A reason may have any length that a Node may have. Twenty of them must not keep the status of the group from being written, which
// rollouts need, too.
func TestRepairOfAnEndlessReason(t *testing.T) {
	w := sickWorld(t, v1alpha1.NodeKernelReady, strings.Repeat("é", 500_000), nil)
	mustReconcile(t, w.groups(), "workers")
	if reason := w.group(t).Status.Repair.Machines[0].Reason; reason != strings.Repeat("é", 128) {
		t.Errorf("the status has %d bytes of it", len(reason))
	}
	for _, said := range w.events.list {
		if len(said) > 2048 {
			t.Errorf("an Event of %d bytes", len(said))
		}
	}
}

// A Node of another name that says that it is of a machine, and how that is, has the machine neither repaired nor spared.
func TestRepairBelievesNoNodeOfAnotherName(t *testing.T) {
	for _, sick := range []bool{true, false} {
		w := sickWorld(t, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", nil)
		liar := newTestNode(corev1.ConditionTrue)
		liar.Name, liar.UID = "zzz"+nodeName, "uid-of-a-liar"
		if !sick {
			liar.Status.Conditions = w.node(t).Status.Conditions
			w.says(t, v1alpha1.NodeKernelReady, corev1.ConditionTrue, "KernelIsReady")
		}
		if err := w.cluster.Create(t.Context(), liar); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Hour)
		mustReconcile(t, w.groups(), "workers")
		if old, _ := w.all(t); (old == nil) != sick {
			t.Errorf("sick: %v, and it is there: %v", sick, old != nil)
		}
		if status := w.group(t).Status.Repair; !sick && status.Unhealthy != 0 {
			t.Errorf("%+v", status)
		}
	}
}

// A machine that does not boot again is not rebooted for ever: others of its group are repaired, and it is.
func TestRepairRebootsThatComeToNothing(t *testing.T) {
	w := sickWorld(t, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", func(c *v1alpha1.NodeRepairConfig) {
		c.Overrides = []v1alpha1.NodeRepairOverride{{NodeMonitoringCondition: "KernelReady", NodeUnhealthyReason: "ForkFailedOutOfPIDs", MinRepairWaitTimeMins: 1, RepairAction: v1alpha1.RepairReboot}}
	})
	w.now = w.now.Add(time.Minute)
	mustReconcile(t, w.groups(), "workers")
	m := w.machine(t)
	m.Spec.Reboots = 1
	if err := w.management.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.setStatus(t, m, func(s *v1alpha1.MachineStatus) {
		s.Phase, s.Reboots = v1alpha1.MachineNotReady, 1
		s.Conditions = append(s.Conditions, metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRebooting, LastTransitionTime: metav1.NewTime(w.now)})
	})
	w.says(t, v1alpha1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown")
	w.says(t, v1alpha1.NodeKernelReady, corev1.ConditionTrue, "KernelIsReady")
	w.now = w.now.Add(45 * time.Minute)
	mustReconcile(t, w.groups(), "workers")
	if status := w.group(t).Status.Repair; len(status.Rebooting) != 1 {
		t.Fatalf("it is over before its time: %+v", status)
	}
	w.now = w.now.Add(2 * time.Minute)
	mustReconcile(t, w.groups(), "workers")
	if old, _ := w.all(t); old != nil {
		t.Errorf("it is not replaced: %+v", w.group(t).Status.Repair)
	}
}

// A Node that was not Ready when the host was switched off has been so all night: its machine boots before it is judged.
func TestRepairAfterANight(t *testing.T) {
	w := sickWorld(t, v1alpha1.NodeReady, "KubeletNotReady", nil)
	w.now = w.now.Add(8 * time.Hour)
	w.began = w.now
	mustReconcile(t, w.groups(), "workers")
	if old, _ := w.all(t); old == nil {
		t.Fatal("it is replaced before it has booted")
	}
	w.now = w.now.Add(repair.BootPatience)
	mustReconcile(t, w.groups(), "workers")
	if old, _ := w.all(t); old != nil {
		t.Errorf("it is not repaired: %+v", w.group(t).Status.Repair)
	}
}
