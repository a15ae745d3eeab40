// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

// spared is a group with repair that has the machine of sickWorld, healthy, and another machine that was launched a day ago, as a
// function says.
func spared(t *testing.T, of func(*v1alpha1.Machine)) (w *world, other func() *v1alpha1.Machine) {
	t.Helper()
	w = sickWorld(t, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", nil)
	w.says(t, v1alpha1.NodeKernelReady, corev1.ConditionTrue, "KernelIsReady")
	group := w.group(t)
	group.Spec.WarmPool = &v1alpha1.WarmPool{MaxGroupPreparedCapacity: new(int32(2)), PoolState: v1alpha1.WarmRunning}
	if err := w.management.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, w.groups(), "workers") // makes the machine of the pool
	other = func() *v1alpha1.Machine {
		t.Helper()
		_, m := w.all(t)
		if m == nil {
			t.Fatal("the machine is gone")
		}
		return m
	}
	m := other()
	m.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(w.now)}}
	m.Status.Phase = v1alpha1.MachineWarmRunning
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionWarmed, Status: metav1.ConditionTrue, Reason: reasonPrepared})
	w.now = w.now.Add(24 * time.Hour)
	of(m)
	status := m.Status
	if err := w.management.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Status = status
	if err := w.management.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return w, other
}

// A machine that waits in a warm pool is no node, and not to be one: its group has nothing to say of it, and repairs nothing. It
// is the same with one that the group has just taken.
func TestWarmMachinesAreNotRepaired(t *testing.T) {
	for name, of := range map[string]func(*v1alpha1.Machine){
		"it waits": func(*v1alpha1.Machine) {},
		"it was taken, and its own controller has not looked yet": func(m *v1alpha1.Machine) { m.Spec.WarmPool = "" },
	} {
		t.Run(name, func(t *testing.T) {
			w, other := spared(t, of)
			if other().Spec.WarmPool == "" {
				w.scaleQuietly(t, 2)
			}
			before := other().Name
			for range 2 {
				mustReconcile(t, w.groups(), "workers")
			}
			group := w.group(t)
			if reason := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionReady).Reason; reason == codeCreation || w.events.count(codeCreation) > 0 {
				t.Errorf("the group is %s, and says %q", reason, w.events.list)
			}
			if status := group.Status.Repair; status.Unhealthy != 0 || w.events.count("Repairing") != 0 || other().Name != before {
				t.Errorf("%+v, %q", status, w.events.list)
			}
		})
	}
}

// The Node of a machine that was stopped says the same as when it went: a machine that is started is not repaired for it
// before it has booted, however long that takes.
func TestStartedMachinesAreNotRepairedForTheirStop(t *testing.T) {
	w := sickWorld(t, v1alpha1.NodeReady, "KubeletNotReady", nil)
	w.provider.instances = append(w.provider.instances, machine.Instance{ID: id, PrivateDNSName: nodeName, State: machine.Stopped})
	running := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		m := w.machine(t)
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionRunning, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(w.now)})
		if err := w.management.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	w.update(t, func(s *v1alpha1.NodeGroupSpec) {
		s.AutoScaling = &v1alpha1.AutoScaling{SuspendedProcesses: []string{v1alpha1.ProcessHealthCheck}}
	})
	w.setPower(t, stop)
	running(metav1.ConditionFalse, v1alpha1.ReasonStopped)
	for _, step := range []func(){
		func() {},
		func() { w.setPower(t, start) },
		func() { running(metav1.ConditionTrue, v1alpha1.ReasonStarting) },
	} {
		w.now = w.now.Add(2 * time.Hour)
		step()
		mustReconcile(t, w.groups(), "workers")
		if old, fresh := w.all(t); old == nil || fresh != nil {
			t.Fatalf("it is repaired: %v, %v, %q", old, fresh, w.events.list)
		}
	}
	w.now = w.now.Add(30 * time.Minute)
	mustReconcile(t, w.groups(), "workers")
	if old, _ := w.all(t); old != nil {
		t.Error("it is not repaired half an hour after it was started")
	}
}
