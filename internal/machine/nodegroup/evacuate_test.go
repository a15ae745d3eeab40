// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
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

// The outcome of a drain for a rollout that failed says nothing of the next rollout, also if that begins before the
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

// evacuating is a world whose machine is being drained for a rollout, and has a pod that a budget keeps.
func evacuating(t *testing.T) *world {
	t.Helper()
	group, m := newTestGroup(1), newTestMachine()
	group.Spec.Rollout, group.Status.Rollout = &v1alpha1.NodeGroupRollout{ID: "u1"}, &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Phase: v1alpha1.RolloutUpgrade, Draining: []string{id}}
	m.Spec.Labels, m.Spec.Taints, m.Spec.NodeGroupUID = group.Spec.Labels, group.Spec.Taints, group.UID
	w := newWorld(t, group, m, newTestNode(corev1.ConditionTrue), running("web-0"))
	w.faults.evict = func(client.Client, client.Object) error { return apierrors.NewTooManyRequests("a budget", 0) }
	for range 3 {
		mustReconcile(t, w.machines(), id)
	}
	if reason := drainReason(w.machine(t)); reason != reasonDraining {
		t.Fatalf("the machine is %q", reason)
	}
	return w
}

// A machine of which nothing is left that pods could be evicted from is drained, however far that was, so that its
// rollout goes on.
func TestDrainsThatLoseTheirNode(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, w *world){
		"its Node was deleted": func(t *testing.T, w *world) {
			t.Helper()
			node := &corev1.Node{}
			w.get(t, w.cluster, node, nodeName)
			if err := w.faults.off(func() error { return w.cluster.Delete(t.Context(), node) }); err != nil {
				t.Fatal(err)
			}
		},
		"it was stopped": func(t *testing.T, w *world) { t.Helper(); w.setPower(t, stop) },
		"it does not boot again": func(t *testing.T, w *world) {
			t.Helper()
			w.provider.instances[0].State, w.provider.launchError = machine.Stopped, machine.ErrNoPodSubnet
		},
		"its record was damaged": func(t *testing.T, w *world) {
			t.Helper()
			w.provider.damaged = true
			w.ends(t, "web-0")
			w.faults.evict = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := evacuating(t)
			lose(t, w)
			for range 3 {
				_, _ = reconcileOnce(t, w.machines(), id) // which fails for a machine that cannot boot
			}
			if reason := drainReason(w.machine(t)); reason != reasonDrained {
				t.Errorf("the machine is %q: %+v", reason, w.machine(t).Status.Conditions)
			}
		})
	}
}

// A drain that fails says why, and ends when its time is over, with a reason.
func TestDrainsThatFail(t *testing.T) {
	w := evacuating(t)
	w.faults.evict = func(client.Client, client.Object) error { return errTest }
	if _, err := reconcileOnce(t, w.machines(), id); err == nil {
		t.Error("it is not tried again")
	}
	drained := func() *metav1.Condition {
		return meta.FindStatusCondition(w.machine(t).Status.Conditions, v1alpha1.ConditionDrained)
	}
	if is := drained(); is.Reason != reasonDraining || !strings.Contains(is.Message, errTest.Error()) {
		t.Errorf("%+v", is)
	}
	w.now = w.now.Add(w.DrainTime)
	_, _ = reconcileOnce(t, w.machines(), id)
	if is := drained(); is.Reason != reasonTimedOut || !strings.Contains(is.Message, errTest.Error()) || !strings.Contains(is.Message, "only if the rollout is forced") {
		t.Errorf("%+v", is)
	}
}

// The time in which no service ran is nobody's: a rollout goes on after it.
func TestRolloutsAfterANight(t *testing.T) {
	w := evacuating(t)
	w.now = w.now.Add(8 * time.Hour)
	w.began = w.now
	mustReconcile(t, w.machines(), id)
	if reason := drainReason(w.machine(t)); reason != reasonDraining {
		t.Errorf("the drain is %q at once", reason)
	}
	w.now = w.now.Add(lateAfter)
	mustReconcile(t, w.machines(), id)
	if reason := drainReason(w.machine(t)); reason != reasonTimedOut {
		t.Errorf("the drain is %q after %v", reason, lateAfter)
	}

	w = rolling(t, false)
	w.now = w.now.Add(8 * time.Hour)
	w.began = w.now
	if mustReconcile(t, w.groups(), "workers"); w.group(t).Status.Rollout.Code != "" {
		t.Errorf("%+v", w.group(t).Status.Rollout)
	}
	w.now = w.now.Add(rolloutPatience)
	if mustReconcile(t, w.groups(), "workers"); w.group(t).Status.Rollout.Code != codeCreation {
		t.Errorf("%+v", w.group(t).Status.Rollout)
	}
}

// A machine is chosen by no status that is older than what was chosen last: else the one before would be forgotten, and be
// drained beside it.
func TestNoMachineIsChosenTwice(t *testing.T) {
	group := newTestGroup(2)
	group.Spec.Rollout, group.Spec.EKS.UpdateConfig.UpdateStrategy = &v1alpha1.NodeGroupRollout{ID: "u1"}, v1alpha1.StrategyMinimal
	objects := []client.Object{group, newTestCluster()}
	for _, name := range []string{"i-a", "i-b"} {
		m := newTestMachine()
		m.Name, m.UID, m.Spec.NodeGroupUID, m.Status.Phase = name, types.UID(name), group.UID, v1alpha1.MachineReady
		objects = append(objects, m)
	}
	w := newWorld(t, objects...)
	once := false
	w.faults.before = func(name string) {
		if strings.HasPrefix(name, "management list *v1alpha1.MachineList") && !once { // when the group has been read
			once = true
			is := w.group(t)
			is.Status.Rollout = &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Phase: v1alpha1.RolloutUpgrade, Draining: []string{"i-b"}}
			if err := w.management.Status().Update(t.Context(), is); err != nil {
				t.Error(err)
			}
		}
	}
	for range 2 {
		mustReconcile(t, w.groups(), "workers")
		if status := w.group(t).Status.Rollout; !slices.Equal(status.Draining, []string{"i-b"}) {
			t.Errorf("%+v", status)
		}
	}
}
