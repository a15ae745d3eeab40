// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/repair"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
)

// uneven is a world with a group of 3 machines that are Ready, all in the first of its two zones.
func uneven(t *testing.T, change func(*v1alpha1.NodeGroup)) *world {
	t.Helper()
	group := newTestGroup(3)
	change(group)
	objects := []client.Object{newTestCluster(), group}
	for _, name := range []string{"i-a", "i-b", "i-c"} {
		m := newTestMachine()
		m.Name, m.UID, m.Spec.NodeGroupUID, m.Spec.SubnetID = name, "", group.UID, clusternetworktest.SubnetA
		readyIn(m, "us-east-1a")
		objects = append(objects, m)
	}
	return newWorld(t, objects...)
}

// readyIn has a machine be a node that is Ready.
func readyIn(m *v1alpha1.Machine, zone string) {
	m.Status.ProviderID, m.Status.Phase = v1alpha1.ProviderID(zone, m.Name), v1alpha1.MachineReady
	m.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched}, {Step: v1alpha1.StepReady}}
}

// spare is the machine that was launched to make zones even; nil if there is none.
func (w *world) spare(t *testing.T) *v1alpha1.Machine {
	t.Helper()
	for _, m := range w.living(t) {
		if isSpare(&m) {
			return &m
		}
	}
	return nil
}

// said is the message of the group's condition Ready, which is to be true.
func (w *world) said(t *testing.T) string {
	t.Helper()
	for _, c := range w.group(t).Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	t.Fatalf("the group is not Ready: %+v", w.group(t).Status.Conditions)
	return ""
}

// A group that is uneven has a machine launched in the emptier zone, and when it is Ready loses one of the fuller: each with
// its cause, and the group is Ready all the time.
func TestGroupIsRebalanced(t *testing.T) {
	w := uneven(t, func(*v1alpha1.NodeGroup) {})
	for range 3 {
		mustReconcile(t, w.groups(), "workers")
	}
	spare := w.spare(t)
	if spare == nil || len(w.living(t)) != 4 || spare.Spec.SubnetID != clusternetworktest.SubnetB {
		t.Fatalf("machines %+v", w.living(t))
	}
	if want := "At 2026-11-20T12:00:00Z availability zones us-east-1a us-east-1b had 3 0 instances respectively.  An instance was launched to aid in balancing the group's zones."; spare.Annotations[v1alpha1.AnnotationLaunchCause] != want {
		t.Errorf("launched because %q", spare.Annotations[v1alpha1.AnnotationLaunchCause])
	}
	if !strings.Contains(w.said(t), "its zones are made even: 1 additional machine") {
		t.Errorf("said %q", w.said(t))
	}
	readyIn(spare, "us-east-1b")
	if err := w.management.Status().Update(t.Context(), spare); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, w.groups(), "workers")
	left := w.living(t)
	if len(left) != 3 || !slices.ContainsFunc(left, func(m v1alpha1.Machine) bool { return m.Name == spare.Name }) {
		t.Fatalf("machines %+v", left)
	}
	for _, m := range w.list(t) {
		cause := m.Annotations[v1alpha1.AnnotationTerminationCause]
		if !alive(m) && (!strings.Contains(cause, "instances were launched to balance instances in zones us-east-1b with other zones resulting in more than desired number of instances in the group.") ||
			!strings.Contains(cause, "shrinking the capacity from 4 to 3.  At 2026-11-20T12:00:00Z instance "+m.Name+" was selected for termination.")) {
			t.Errorf("%s ends because %q", m.Name, cause)
		}
	}
	for range 3 {
		mustReconcile(t, w.groups(), "workers")
	}
	if w.spare(t) != nil || len(w.living(t)) != 3 {
		t.Errorf("machines %+v", w.living(t))
	}
	w.said(t)
}

// A group stays as it is while one of the processes is suspended, its cluster is shifted away from a zone, it is rolled out,
// or its machines are protected.
func TestGroupIsNotRebalanced(t *testing.T) {
	suspend := func(process string) func(*v1alpha1.NodeGroup) {
		return func(g *v1alpha1.NodeGroup) {
			g.Spec.AutoScaling = &v1alpha1.AutoScaling{SuspendedProcesses: []string{process}}
		}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.NodeGroup)
		world  func(*world)
	}{
		"AZRebalance": {suspend(v1alpha1.ProcessAZRebalance), func(*world) {}},
		"Launch":      {suspend(v1alpha1.ProcessLaunch), func(*world) {}},
		"Terminate":   {suspend(v1alpha1.ProcessTerminate), func(*world) {}},
		"shifted":     {func(*v1alpha1.NodeGroup) {}, func(w *world) { w.shift(t, "us-east-1a") }},
		"one zone":    {func(g *v1alpha1.NodeGroup) { g.Spec.SubnetIDs = []v1alpha1.SubnetID{clusternetworktest.SubnetA} }, func(*world) {}},
		"protected": {func(*v1alpha1.NodeGroup) {}, func(w *world) {
			for _, m := range w.living(t) {
				m.Spec.ProtectedFromScaleIn = true
				if err := w.management.Update(t.Context(), &m); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := uneven(t, test.change)
			test.world(w)
			for range 3 {
				mustReconcile(t, w.groups(), "workers")
			}
			if len(w.list(t)) != 3 || len(w.living(t)) != 3 {
				t.Errorf("machines %+v", w.list(t))
			}
		})
	}
}

// A zone without a free address makes no trouble of the group, which has its size: it says why its zones stay uneven, and
// looks again.
func TestNoRoomToRebalance(t *testing.T) {
	w := uneven(t, func(*v1alpha1.NodeGroup) {})
	w.usage[1].Used = []netip.Prefix{w.usage[1].CIDR}
	again := mustReconcile(t, w.groups(), "workers")
	if len(w.list(t)) != 3 || again.RequeueAfter != balanceAgain || !strings.Contains(w.said(t), "its zones stay uneven: the group's subnets have no free address for a machine in us-east-1b") {
		t.Fatalf("%+v, again %v, said %q", w.list(t), again, w.said(t))
	}
	w.usage[1].Used = nil
	mustReconcile(t, w.groups(), "workers")
	if w.spare(t) == nil {
		t.Fatal("no machine is launched when there is room")
	}
}

// A machine that is not Ready in time goes, and so does one that is not needed any more.
func TestSpareThatIsNotNeeded(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *world){
		"late": func(t *testing.T, w *world) {
			t.Helper()
			one := w.spare(t)
			one.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(w.now)}}
			if err := w.management.Status().Update(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(repair.JoinPatience)
		},
		"not launched": func(t *testing.T, w *world) {
			t.Helper()
			one := w.spare(t)
			one.CreationTimestamp = metav1.NewTime(w.now)
			if err := w.management.Update(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(repair.JoinPatience)
		},
		"shifted": func(t *testing.T, w *world) { t.Helper(); w.shift(t, "us-east-1a") },
		"suspended": func(t *testing.T, w *world) {
			t.Helper()
			w.update(t, func(s *v1alpha1.NodeGroupSpec) {
				s.AutoScaling = &v1alpha1.AutoScaling{SuspendedProcesses: []string{v1alpha1.ProcessAZRebalance}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := uneven(t, func(*v1alpha1.NodeGroup) {})
			mustReconcile(t, w.groups(), "workers")
			spare := w.spare(t).Name
			change(t, w)
			mustReconcile(t, w.groups(), "workers")
			if left := w.living(t); len(left) != 3 || slices.ContainsFunc(left, func(m v1alpha1.Machine) bool { return m.Name == spare }) {
				t.Errorf("machines %+v", left)
			}
		})
	}
}

// Whichever call fails, as if the service were killed there, one machine is launched and one ends, and the group has its size.
func TestRebalanceEveryCallFails(t *testing.T) {
	run := func(t *testing.T, w *world) (failed bool) {
		t.Helper()
		for range 8 {
			if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
				failed = true
			}
			if spare := w.spare(t); spare != nil && spare.Status.Phase != v1alpha1.MachineReady {
				readyIn(spare, "us-east-1b")
				if err := w.faults.off(func() error { return w.management.Status().Update(t.Context(), spare) }); err != nil {
					t.Fatal(err)
				}
			}
		}
		return failed
	}
	clean := uneven(t, func(*v1alpha1.NodeGroup) {})
	run(t, clean)
	for call, count := range clean.faults.calls {
		for nth := 1; nth <= count; nth++ {
			w := uneven(t, func(*v1alpha1.NodeGroup) {})
			w.faults.fail(call, nth)
			if !run(t, w) {
				t.Errorf("%s, call %d, failed, and nobody heard of it", call, nth)
			}
			in := map[v1alpha1.SubnetID]int{}
			for _, m := range w.living(t) {
				in[m.Spec.SubnetID]++
			}
			const creation = "management create *v1alpha1.Machine"
			tries := 1
			if call == creation {
				tries++
			}
			if in[clusternetworktest.SubnetA] != 2 || in[clusternetworktest.SubnetB] != 1 || w.faults.calls[creation] != tries || w.spare(t) != nil {
				t.Errorf("%s, call %d, failed: %v are left, after %d creations", call, nth, in, w.faults.calls[creation])
			}
		}
	}
}

// A rollout places the machines that it makes itself, and one that failed ends those that are too many.
func TestRolloutsAreNotRebalanced(t *testing.T) {
	group := newTestGroup(3)
	group.Spec.Rollout = &v1alpha1.NodeGroupRollout{ID: "u1"}
	if rebalances(group, nil) {
		t.Error("a rollout that begins")
	}
	group.Status.Rollout = &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Phase: v1alpha1.RolloutUpgrade, Outdated: 1}
	if rebalances(group, nil) {
		t.Error("a rollout that goes on")
	}
	group.Status.Rollout.Code = codeEviction
	if rebalances(group, nil) {
		t.Error("a rollout that failed, whose machines go")
	}
	group.Status.Rollout.Returned = true
	if !rebalances(group, nil) {
		t.Error("a rollout that is over")
	}
}
