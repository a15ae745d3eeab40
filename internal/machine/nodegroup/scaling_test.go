// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

// update changes the test's group.
func (w *world) update(t *testing.T, change func(*v1alpha1.NodeGroupSpec)) {
	t.Helper()
	group := w.group(t)
	change(&group.Spec)
	if err := w.faults.off(func() error { return w.management.Update(t.Context(), group) }); err != nil {
		t.Fatal(err)
	}
}

// living are the machines of the test's group that are not being deleted.
func (w *world) living(t *testing.T) []v1alpha1.Machine {
	t.Helper()
	var living []v1alpha1.Machine
	for _, m := range w.list(t) {
		if alive(m) {
			living = append(living, m)
		}
	}
	return living
}

// A machine that is to be ended without a replacement is the one that ends, though another is more dispensable.
func TestEnding(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(3))
	r := w.groups()
	mustReconcile(t, r, "workers")
	all := w.living(t)
	if len(all) != 3 {
		t.Fatalf("%d machines", len(all))
	}
	if cause := all[0].Annotations[v1alpha1.AnnotationLaunchCause]; !strings.Contains(cause, "increasing the capacity from") {
		t.Errorf("launched because %q", cause)
	}
	for _, m := range all {
		w.update(t, func(s *v1alpha1.NodeGroupSpec) {
			s.ScalingConfig.DesiredSize--
			if s.AutoScaling == nil {
				s.AutoScaling = &v1alpha1.AutoScaling{}
			}
			s.AutoScaling.Ending = append(s.AutoScaling.Ending, m.Name)
		})
		left := len(w.living(t)) - 1
		for range 2 {
			mustReconcile(t, r, "workers")
		}
		now := w.living(t)
		if len(now) != left {
			t.Fatalf("%d machines are left, want %d", len(now), left)
		}
		for _, other := range now {
			if other.Name == m.Name {
				t.Errorf("%s is left", m.Name)
			}
		}
	}
	for _, m := range w.list(t) {
		if cause := m.Annotations[v1alpha1.AnnotationTerminationCause]; !strings.Contains(cause, "in response to a user request, shrinking the capacity from") {
			t.Errorf("%s ends because %q", m.Name, cause)
		}
	}
}

// Protected machines stay when there are too many, and go with their group.
func TestProtectedMachines(t *testing.T) {
	group := newTestGroup(2)
	group.Spec.AutoScaling = &v1alpha1.AutoScaling{ProtectNewMachines: true, Tags: []v1alpha1.AutoScalingTag{{Key: "to", Value: "machines", PropagateAtLaunch: true}, {Key: "not", Value: "to"}}}
	w := newWorld(t, newTestCluster(), group)
	r := w.groups()
	mustReconcile(t, r, "workers")
	all := w.living(t)
	if len(all) != 2 || !all[0].Spec.ProtectedFromScaleIn || all[0].Spec.Tags["to"] != "machines" || all[0].Spec.Tags["not"] != "" || all[0].Spec.Tags["a"] != "b" {
		t.Fatalf("machines %+v", all)
	}
	first := all[0].DeepCopy()
	first.Spec.ProtectedFromScaleIn = false
	if err := w.faults.off(func() error { return w.management.Update(t.Context(), first) }); err != nil {
		t.Fatal(err)
	}
	w.update(t, func(s *v1alpha1.NodeGroupSpec) { s.ScalingConfig.DesiredSize = 0 })
	mustReconcile(t, r, "workers")
	left := w.living(t)
	if len(left) != 1 || left[0].Name == first.Name {
		t.Fatalf("machines %+v", left)
	}
	for _, m := range w.list(t) {
		if cause := m.Annotations[v1alpha1.AnnotationTerminationCause]; m.Name == first.Name && !strings.Contains(cause, "shrinking the capacity from 2 to 1") {
			t.Errorf("it ends because %q", cause)
		}
	}
	if err := w.faults.off(func() error { return w.management.Delete(t.Context(), w.group(t)) }); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, r, "workers")
	if left := w.living(t); len(left) != 0 {
		t.Errorf("machines of a group that is deleted: %+v", left)
	}
}

// A group replaces a machine of its own that is stopped, as Auto Scaling does, unless one of the processes is suspended
// that do it.
func TestGroupReplacesWhatIsStopped(t *testing.T) {
	for suspended, kept := range map[string]bool{"": false, "HealthCheck": true, "ReplaceUnhealthy": true, "Terminate": true} {
		t.Run(suspended, func(t *testing.T) {
			group := newTestGroup(2)
			if suspended != "" {
				group.Spec.AutoScaling = &v1alpha1.AutoScaling{SuspendedProcesses: []string{suspended}}
			}
			w := newWorld(t, newTestCluster(), group)
			r, machines := w.groups(), w.machines()
			mustReconcile(t, r, "workers")
			one := w.living(t)[0]
			mustReconcile(t, machines, one.Name)
			before := w.living(t)[0]
			one = before
			one.Spec.PowerState = v1alpha1.PowerStopped
			if err := w.faults.off(func() error { return w.management.Update(t.Context(), &one) }); err != nil {
				t.Fatal(err)
			}
			mustReconcile(t, machines, one.Name)
			mustReconcile(t, r, "workers")
			if len(w.living(t)) != 2 || w.living(t)[0].Name != one.Name && w.living(t)[1].Name != one.Name {
				t.Error("a machine that is being stopped is replaced")
			}
			mustReconcile(t, machines, one.Name)
			for range 2 {
				mustReconcile(t, r, "workers")
			}
			stays := slices.ContainsFunc(w.living(t), func(m v1alpha1.Machine) bool { return m.Name == one.Name })
			if stays != kept || len(w.living(t)) != 2 {
				t.Errorf("it stays: %t, want %t; %d machines", stays, kept, len(w.living(t)))
			}
			for _, m := range w.list(t) {
				if cause := m.Annotations[v1alpha1.AnnotationTerminationCause]; m.Name == one.Name && !kept && !strings.Contains(cause, "EC2 health check indicating it has been terminated or stopped") {
					t.Errorf("it goes because %q", cause)
				}
			}
		})
	}
}

// A group neither launches nor ends machines for its size while that is suspended. It does when the process is resumed.
func TestSuspendedProcesses(t *testing.T) {
	group := newTestGroup(2)
	group.Spec.AutoScaling = &v1alpha1.AutoScaling{SuspendedProcesses: []string{v1alpha1.ProcessLaunch}}
	w := newWorld(t, newTestCluster(), group)
	r := w.groups()
	change := func(suspended []string, size int32, want int) {
		t.Helper()
		g := w.group(t)
		g.Spec.AutoScaling.SuspendedProcesses, g.Spec.ScalingConfig.DesiredSize = suspended, size
		if err := w.faults.off(func() error { return w.management.Update(t.Context(), g) }); err != nil {
			t.Fatal(err)
		}
		mustReconcile(t, r, "workers")
		if n := len(w.living(t)); n != want {
			t.Errorf("%v of a group of %d: %d machines, want %d", suspended, size, n, want)
		}
	}
	change([]string{v1alpha1.ProcessLaunch}, 2, 0)
	change(nil, 2, 2)
	change([]string{v1alpha1.ProcessTerminate}, 1, 2)
	change(nil, 1, 1)
}

// A group whose new machines are protected has its size again after a rollout that failed or was stopped: what the rollout made in
// addition goes. Afterwards protection is as before.
func TestProtectedMachinesOfAFailedRolloutGo(t *testing.T) {
	for name, end := range map[string]func(*v1alpha1.NodeGroup){
		"failed":  func(g *v1alpha1.NodeGroup) { g.Status.Rollout.Code = codeEviction },
		"stopped": func(g *v1alpha1.NodeGroup) { g.Spec.Rollout.Stopped = true },
	} {
		t.Run(name, func(t *testing.T) {
			group, old, fresh := newTestGroup(1), newTestMachine(), newTestMachine()
			group.Spec.AutoScaling = &v1alpha1.AutoScaling{ProtectNewMachines: true}
			group.Spec.Rollout, group.Status.Rollout = &v1alpha1.NodeGroupRollout{ID: "u1"}, &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Phase: v1alpha1.RolloutUpgrade, Outdated: 1, Total: 1}
			end(group)
			fresh.Name, fresh.UID, fresh.Spec.Rollout = "i-fresh", "fresh-uid", "u1"
			for _, m := range []*v1alpha1.Machine{old, fresh} {
				m.Spec.NodeGroupUID, m.Spec.ProtectedFromScaleIn, m.Status.Phase = group.UID, true, v1alpha1.MachineReady
			}
			w := newWorld(t, newTestCluster(), group, old, fresh)
			for range 3 {
				mustReconcile(t, w.groups(), "workers")
			}
			if living := w.living(t); len(living) != 1 || living[0].Name != id {
				t.Fatalf("%d machines", len(living))
			}
			if !w.group(t).Status.Rollout.Returned {
				t.Errorf("%+v", w.group(t).Status.Rollout)
			}
			w.scale(t, 2)
			mustReconcile(t, w.groups(), "workers")
			w.scale(t, 1)
			mustReconcile(t, w.groups(), "workers")
			if living := w.living(t); len(living) != 2 {
				t.Errorf("%d machines: a protected one is gone", len(living))
			}
		})
	}
}
