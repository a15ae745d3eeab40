// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
)

func newTestCluster() *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "muster", UID: "cluster-uid", Generation: 1}}
}

func newTestGroup(desired int32) *v1alpha1.NodeGroup {
	group := &v1alpha1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "workers", UID: "group-uid", Generation: 3},
		Spec: v1alpha1.NodeGroupSpec{
			ClusterName:   "muster",
			ScalingConfig: v1alpha1.ScalingConfig{DesiredSize: desired},
			Labels:        v1alpha1.NodeLabels{"team": "blue"},
			Taints:        v1alpha1.NodeTaints{{Key: "a", Effect: "NoSchedule"}},

			LaunchTemplate: &v1alpha1.LaunchTemplate{InstanceType: "m5.large"},
		},
	}
	group.Default()
	return group
}

func (w *world) list(t *testing.T) []v1alpha1.Machine {
	t.Helper()
	list := &v1alpha1.MachineList{}
	if err := w.faults.off(func() error { return w.management.List(t.Context(), list) }); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (w *world) group(t *testing.T) *v1alpha1.NodeGroup {
	t.Helper()
	group := &v1alpha1.NodeGroup{}
	if !w.get(t, w.management, group, "workers") {
		t.Fatal("the group is gone")
	}
	return group
}

func (w *world) scale(t *testing.T, desired int32) {
	t.Helper()
	group := w.group(t)
	group.Spec.ScalingConfig.DesiredSize = desired
	if err := w.management.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
}

func wantGroup(t *testing.T, group *v1alpha1.NodeGroup, reason, message string) {
	t.Helper()
	condition := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionReady)
	if condition == nil || condition.Reason != reason || !strings.Contains(condition.Message, message) || (condition.Status == "True") != (reason == "Ready") {
		t.Errorf("condition %+v, want %s: %s", condition, reason, message)
	}
}

func TestGroupScales(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(3))
	r := w.groups()
	mustReconcile(t, r, "workers")
	mustReconcile(t, r, "workers")
	machines := w.list(t)
	if len(machines) != 3 {
		t.Fatalf("%d machines, want 3", len(machines))
	}
	for _, m := range machines {
		if !regexp.MustCompile(`^i-[0-9a-f]{17}$`).MatchString(m.Name) {
			t.Errorf("name %q", m.Name)
		}
		expected := v1alpha1.MachineSpec{
			ClusterName: "muster", NodeGroup: "workers", Provider: v1alpha1.ProviderLocal,
			Labels: v1alpha1.NodeLabels{"team": "blue"}, Taints: v1alpha1.NodeTaints{{Key: "a", Effect: "NoSchedule"}},
			LaunchTemplate: &v1alpha1.LaunchTemplate{InstanceType: "m5.large"}, InstanceProfile: "profile-of-muster-node",
		}
		if diff := cmp.Diff(expected, m.Spec); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
		owner := metav1.GetControllerOf(&m)
		if owner == nil || owner.Kind != "NodeGroup" || owner.Name != "workers" || owner.APIVersion != "muster.dev/v1alpha1" || m.Finalizers[0] != v1alpha1.FinalizerMachine {
			t.Errorf("metadata %+v", m.ObjectMeta)
		}
	}
	group := w.group(t)
	wantGroup(t, group, "Joining", "0 of 3 machines are Ready")
	if s := group.Status; s.Replicas != 3 || s.ReadyReplicas != 0 || s.Selector != "muster.dev/nodegroup=workers" || s.ObservedGeneration != 3 {
		t.Errorf("status %+v", s)
	}

	for i := range machines {
		machines[i].Status.Phase = v1alpha1.MachineReady
		if i == 1 {
			machines[i].Status.Phase = v1alpha1.MachineJoining
		}
		if err := w.management.Status().Update(t.Context(), &machines[i]); err != nil {
			t.Fatal(err)
		}
	}
	w.scale(t, 2)
	mustReconcile(t, r, "workers")
	mustReconcile(t, r, "workers")
	for _, m := range w.list(t) {
		if m.DeletionTimestamp.IsZero() != (m.Name != machines[1].Name) {
			t.Errorf("machine %s, phase %s, deleted at %v", m.Name, m.Status.Phase, m.DeletionTimestamp)
		}
	}
	wantGroup(t, w.group(t), "Ready", "2 of 2 machines are Ready; 1 are going")
	if diff := cmp.Diff([]string{
		"Normal ScalingUp: made 3 machines: the group has 0 of 3 machines",
		"Normal ScalingDown: deleted machine " + machines[1].Name + ": the group has 3 of 2 machines, and this one has not joined yet",
	}, w.events.list); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	writes := w.faults.calls["management patch status *v1alpha1.NodeGroup"]
	mustReconcile(t, r, "workers")
	if again := w.faults.calls["management patch status *v1alpha1.NodeGroup"]; again != writes {
		t.Error("a status without news was written")
	}
}

// The cache shows no machine yet: the API server is asked before any is made.
func TestGroupStaleCache(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(3))
	empty := newWorld(t, newTestCluster(), newTestGroup(3))
	mustReconcile(t, w.groups(), "workers")
	r := w.groups()
	r.management = staleLists{Client: w.management, lists: empty.management}
	mustReconcile(t, r, "workers")
	if got := len(w.list(t)); got != 3 {
		t.Errorf("%d machines, want 3", got)
	}
}

func TestGroupDeleted(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(2))
	mustReconcile(t, w.groups(), "workers")
	if err := w.management.Delete(t.Context(), newTestGroup(2)); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, w.groups(), "workers")
	mustReconcile(t, w.groups(), "workers")
	wantGroup(t, w.group(t), "Deleting", "waiting for 2 machines to go")
	for _, m := range w.list(t) {
		if m.DeletionTimestamp.IsZero() {
			t.Errorf("machine %s is not being deleted", m.Name)
		}
		m.Finalizers = nil
		if err := w.management.Update(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	mustReconcile(t, w.groups(), "workers")
	if w.get(t, w.management, &v1alpha1.NodeGroup{}, "workers") {
		t.Error("the group stays")
	}
	mustReconcile(t, w.groups(), "workers")
}

func TestGroupProblems(t *testing.T) {
	second := newTestGroup(2)
	second.Spec.ClusterName = "other"
	invalid := newTestGroup(2)
	invalid.Spec.Labels = v1alpha1.NodeLabels{"a b": "c"}
	tests := []struct {
		name            string
		objects         []client.Object
		reason, message string
	}{
		{"no cluster", []client.Object{newTestGroup(2)}, "ClusterNotFound", `there is no Cluster "muster"`},
		{"another cluster", []client.Object{newTestCluster(), second}, "ClusterNotFound", `this service does not run cluster "other", only "muster"`},
		{"invalid", []client.Object{newTestCluster(), invalid}, "Invalid", "spec.labels[a b]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.objects...)
			if result := mustReconcile(t, w.groups(), "workers"); result != (reconcile.Result{}) {
				t.Errorf("tries again: %+v", result)
			}
			wantGroup(t, w.group(t), test.reason, test.message)
			if machines := w.list(t); len(machines) != 0 {
				t.Errorf("%d machines", len(machines))
			}
		})
	}
}

func TestGroupEveryCallFails(t *testing.T) {
	run := func(t *testing.T, w *world, r *groups) (failed bool) {
		t.Helper()
		for range 3 {
			if _, err := reconcileOnce(t, r, "workers"); err != nil {
				if !errors.Is(err, errTest) {
					t.Errorf("error %v", err)
				}
				failed = true
			}
		}
		w.scaleQuietly(t, 1)
		for range 3 {
			if _, err := reconcileOnce(t, r, "workers"); err != nil {
				failed = true
			}
		}
		return failed
	}
	clean := newWorld(t, newTestCluster(), newTestGroup(3))
	run(t, clean, clean.groups())
	for call, count := range clean.faults.calls {
		for nth := 1; nth <= count; nth++ {
			w := newWorld(t, newTestCluster(), newTestGroup(3))
			w.faults.fail(call, nth)
			if !run(t, w, w.groups()) {
				t.Errorf("%s, call %d, failed, and nobody heard of it", call, nth)
			}
			mustReconcile(t, w.groups(), "workers")
			left := 0
			for _, m := range w.list(t) {
				if m.DeletionTimestamp.IsZero() {
					left++
				}
			}
			if left != 1 || len(w.list(t)) > 3 {
				t.Errorf("%s, call %d, failed: %d of %d machines stay", call, nth, left, len(w.list(t)))
			}
		}
	}
}

func (w *world) scaleQuietly(t *testing.T, desired int32) {
	t.Helper()
	_ = w.faults.off(func() error { w.scaleNow(t, desired); return nil })
}

func (w *world) scaleNow(t *testing.T, desired int32) {
	t.Helper()
	group := &v1alpha1.NodeGroup{}
	if err := w.management.Get(t.Context(), client.ObjectKey{Name: "workers"}, group); err != nil {
		t.Fatal(err)
	}
	group.Spec.ScalingConfig.DesiredSize = desired
	if err := w.management.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
}

func TestGroupOfCluster(t *testing.T) {
	other := newTestGroup(1)
	other.Name, other.Spec.ClusterName = "other", "other"
	w := newWorld(t, newTestGroup(1), other)
	got := fmt.Sprint(w.groups().ofCluster(t.Context(), newTestCluster()))
	if got != "[/workers]" {
		t.Errorf("requests %s", got)
	}
	w.faults.fail("management list *v1alpha1.NodeGroupList", 1)
	if got := w.groups().ofCluster(t.Context(), newTestCluster()); got != nil {
		t.Errorf("requests %v", got)
	}
}
