// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// changeGroup changes the spec of the group.
func (w *world) changeGroup(t *testing.T, change func(*v1alpha1.NodeGroupSpec)) {
	t.Helper()
	group := w.group(t)
	change(&group.Spec)
	if err := w.faults.off(func() error { return w.management.Update(t.Context(), group) }); err != nil {
		t.Fatal(err)
	}
}

// What came of a drain for a rollout that failed says nothing of the next rollout, also if that begins before the
// machine's controller has looked: with force the machine would be ended at once, and without it the rollout would fail.
func TestTheNextRolloutDrainsAnew(t *testing.T) {
	for _, force := range []bool{true, false} {
		group, m := newTestGroup(1), newTestMachine()
		group.Spec.Rollout, group.Spec.EKS.UpdateConfig.UpdateStrategy = &v1alpha1.NodeGroupRollout{ID: "u2", Force: force}, v1alpha1.StrategyMinimal
		group.Status.Rollout = &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Phase: v1alpha1.RolloutUpgrade, Code: codeEviction}
		m.Spec.NodeGroupUID, m.Status.Phase = group.UID, v1alpha1.MachineReady
		isDrained(metav1.ConditionFalse, reasonTimedOut)(&m.Status)
		w := newWorld(t, group, m, newTestCluster())
		for range 3 {
			mustReconcile(t, w.groups(), "workers")
		}
		if status := w.group(t).Status.Rollout; !alive(*w.machine(t)) || status.Code != "" || status.Draining != nil {
			t.Fatalf("force %v: the machine stays: %v; %+v", force, alive(*w.machine(t)), status)
		}
		mustReconcile(t, w.machines(), id)
		m = w.machine(t)
		if reason := drainReason(m); reason != "" {
			t.Errorf("force %v: it is still %q", force, reason)
		}
		w.setStatus(t, m, becomesReady)
		if status := w.group(t).Status.Rollout; !slices.Equal(status.Draining, []string{id}) {
			t.Errorf("force %v: %+v", force, status)
		}
	}
}
