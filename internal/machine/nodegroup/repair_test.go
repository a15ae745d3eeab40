// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/repair"
)

// sickWorld is a group with repair and one machine, a node for an hour, whose Node has a bad condition since now.
func sickWorld(t *testing.T, condition, reason string, change func(*v1alpha1.NodeRepairConfig)) *world {
	t.Helper()
	group, m, node := newTestGroup(1), newTestMachine(), newTestNode(corev1.ConditionTrue)
	group.Spec.EKS.NodeRepairConfig = &v1alpha1.NodeRepairConfig{Enabled: new(true)}
	if change != nil {
		change(group.Spec.EKS.NodeRepairConfig)
	}
	m.Spec.NodeGroupUID, m.Spec.Labels, m.Spec.Taints = group.UID, group.Spec.Labels, group.Spec.Taints
	w := newWorld(t, group, m, node, newTestCluster())
	w.setStatus(t, m, func(s *v1alpha1.MachineStatus) {
		s.Phase, s.NodeName = v1alpha1.MachineReady, nodeName
		for _, step := range []v1alpha1.JoinStep{v1alpha1.StepLaunched, v1alpha1.StepReady} {
			s.Join = append(s.Join, v1alpha1.JoinRecord{Step: step, Time: metav1.NewMicroTime(w.now.Add(-time.Hour))})
		}
	})
	w.says(t, condition, corev1.ConditionFalse, reason)
	return w
}

// says has the Node say something, since now.
func (w *world) says(t *testing.T, condition string, status corev1.ConditionStatus, reason string) {
	t.Helper()
	node := &corev1.Node{}
	w.get(t, w.cluster, node, nodeName)
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return string(c.Type) == condition })
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeConditionType(condition), Status: status, Reason: reason, Message: "as it says", LastTransitionTime: metav1.NewTime(w.now), LastHeartbeatTime: metav1.NewTime(w.now),
	})
	if err := w.faults.off(func() error { return w.cluster.Status().Update(t.Context(), node) }); err != nil {
		t.Fatal(err)
	}
}

// count is how many Events of a reason there are.
func (r *recorder) count(reason string) (n int) {
	for _, e := range r.list {
		if strings.Contains(e, " "+reason+": ") {
			n++
		}
	}
	return n
}

// A machine whose node is unhealthy for as long as EKS waits is deleted, and its group makes another, in the same turn.
func TestRepairReplaces(t *testing.T) {
	w := sickWorld(t, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", nil)
	again := mustReconcile(t, w.groups(), "workers")
	status := w.group(t).Status.Repair
	if status.Unhealthy != 1 || len(status.Machines) != 1 || status.HeldReason != "" || again.RequeueAfter <= 29*time.Minute || again.RequeueAfter > 31*time.Minute {
		t.Fatalf("%+v, again after %v", status, again.RequeueAfter)
	}
	if m := status.Machines[0]; m.Machine != id || m.Condition != "KernelReady" || m.Reason != "ForkFailedOutOfPIDs" || m.Action != v1alpha1.RepairReplace || !m.Due.Time.Equal(w.now.Add(30*time.Minute)) {
		t.Errorf("%+v", m)
	}
	mustReconcile(t, w.groups(), "workers")
	if n := w.events.count("NodeUnhealthy"); n != 1 {
		t.Errorf("%d Events about the node: %q", n, w.events.list)
	}
	w.now = w.now.Add(30*time.Minute - time.Second)
	mustReconcile(t, w.groups(), "workers")
	if old, fresh := w.all(t); old == nil || fresh != nil {
		t.Fatalf("a second before it is due: %v, %v", old, fresh)
	}
	w.now = w.now.Add(time.Second)
	mustReconcile(t, w.groups(), "workers")
	old, fresh := w.all(t)
	if old != nil || fresh == nil || w.events.count("Repairing") != 1 {
		t.Errorf("when it is due: %v, %v, %q", old, fresh, w.events.list)
	}
	if status := w.group(t).Status; status.Repair.Unhealthy != 1 && status.Repair.Unhealthy != 0 {
		t.Errorf("%+v", status.Repair)
	}
}

// A node that heals in time is left alone, and a group without repair looks at nobody.
func TestRepairLeaves(t *testing.T) {
	for name, heal := range map[string]func(*testing.T, *world){
		"healed": func(t *testing.T, w *world) {
			t.Helper()
			w.says(t, v1alpha1.NodeKernelReady, corev1.ConditionTrue, "KernelIsReady")
		},
		"off": func(t *testing.T, w *world) {
			t.Helper()
			group := w.group(t)
			group.Spec.EKS.NodeRepairConfig.Enabled = new(false)
			if err := w.management.Update(t.Context(), group); err != nil {
				t.Fatal(err)
			}
		},
		"its own monitor does not know": func(t *testing.T, w *world) {
			t.Helper()
			w.says(t, v1alpha1.NodeKernelReady, corev1.ConditionUnknown, "Unknown")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := sickWorld(t, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", nil)
			mustReconcile(t, w.groups(), "workers")
			heal(t, w)
			w.now = w.now.Add(time.Hour)
			mustReconcile(t, w.groups(), "workers")
			if old, fresh := w.all(t); old == nil || fresh != nil {
				t.Errorf("%v, %v", old, fresh)
			}
			if status := w.group(t).Status.Repair; status != nil && (status.Unhealthy != 0 || name == "off") {
				t.Errorf("%+v", status)
			}
		})
	}
}

// The caches may be behind: what the API server says counts.
func TestRepairBelievesTheAPIServer(t *testing.T) {
	w := sickWorld(t, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", nil)
	w.now = w.now.Add(time.Hour)
	healed := newTestNode(corev1.ConditionTrue)
	stale := w.clusterLive
	w.clusterLive = nodeReader{stale, healed}
	mustReconcile(t, w.groups(), "workers")
	if old, fresh := w.all(t); old == nil || fresh != nil {
		t.Errorf("it is repaired by what the cache says: %v, %v", old, fresh)
	}
	w.clusterLive = stale
	mustReconcile(t, w.groups(), "workers")
	if old, _ := w.all(t); old != nil {
		t.Error("it is not repaired")
	}
}

// nodeReader reads one Node as it is given.
type nodeReader struct {
	client.Reader
	node *corev1.Node
}

func (r nodeReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if node, ok := object.(*corev1.Node); ok {
		*node = *r.node.DeepCopy()
		return nil
	}
	return r.Reader.Get(ctx, key, object, opts...)
}

// A Node that says that it is another machine's is nothing to its group.
func TestRepairOfAnothersNode(t *testing.T) {
	w := sickWorld(t, v1alpha1.NodeReady, "KubeletNotReady", nil)
	node := &corev1.Node{}
	w.get(t, w.cluster, node, nodeName)
	node.Spec.ProviderID = v1alpha1.ProviderID("us-east-1a", "i-00000000000000001")
	if err := w.cluster.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
	mustReconcile(t, w.groups(), "workers")
	if old, fresh := w.all(t); old == nil || fresh != nil {
		t.Errorf("%v, %v", old, fresh)
	}
}

// By an override a machine is drained and rebooted, once whoever dies in between, and its node takes pods again.
func TestRepairReboots(t *testing.T) {
	w := sickWorld(t, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", func(c *v1alpha1.NodeRepairConfig) {
		c.Overrides = []v1alpha1.NodeRepairOverride{{NodeMonitoringCondition: "KernelReady", NodeUnhealthyReason: "ForkFailedOutOfPIDs", MinRepairWaitTimeMins: 1, RepairAction: v1alpha1.RepairReboot}}
	})
	w.provider.instances = append(w.provider.instances, machine.Instance{
		ID: id, LaunchTime: w.now.Add(-time.Hour), PrivateIP: netip.MustParseAddr("192.168.64.11"), PrivateDNSName: nodeName, Zone: "us-east-1a", State: machine.Running,
	})
	w.now = w.now.Add(time.Minute)
	mustReconcile(t, w.groups(), "workers")
	if status := w.group(t).Status.Repair; len(status.Rebooting) != 1 || status.Rebooting[0].Reboots != 1 || w.machine(t).Spec.Reboots != 0 {
		t.Fatalf("%+v", status)
	}
	cordoned := func() bool {
		t.Helper()
		node := &corev1.Node{}
		w.get(t, w.cluster, node, nodeName)
		return node.Spec.Unschedulable
	}
	mustReconcile(t, w.machines(), id)
	if m := w.machine(t); !cordoned() || drainReason(m) != reasonDrained {
		t.Fatalf("cordoned: %v, %+v", cordoned(), m.Status.Conditions)
	}
	for range 2 { // the second is by a controller that has just been started
		mustReconcile(t, w.groups(), "workers")
		if n := w.machine(t).Spec.Reboots; n != 1 {
			t.Fatalf("it is to be rebooted %d times", n)
		}
	}
	for range 4 { // down, and up again
		mustReconcile(t, w.machines(), id)
	}
	m := w.machine(t)
	if running := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRunning); m.Status.Reboots != 1 || running == nil || running.Status != metav1.ConditionTrue {
		t.Fatalf("%+v", m.Status)
	}
	mustReconcile(t, w.groups(), "workers")
	if status := w.group(t).Status.Repair; len(status.Rebooting) != 1 {
		t.Errorf("it is over before the node has been heard of: %+v", status)
	}
	w.now = w.now.Add(10 * time.Second)
	w.says(t, v1alpha1.NodeReady, corev1.ConditionTrue, "KubeletReady")
	mustReconcile(t, w.groups(), "workers")
	status := w.group(t).Status.Repair
	if len(status.Rebooting) != 0 || w.events.count("Rebooted") == 0 {
		t.Errorf("%+v, %q", status, w.events.list)
	}
	if since := status.Machines[0].Since.Time; since.Before(w.now.Add(-11 * time.Second)) {
		t.Errorf("what was bad before the reboot counts since %s, and it is %s", since, w.now)
	}
	mustReconcile(t, w.machines(), id)
	if cordoned() || drainReason(w.machine(t)) != "" {
		t.Errorf("after it the node is cordoned: %v, drained: %q", cordoned(), drainReason(w.machine(t)))
	}
	if old, fresh := w.all(t); old == nil || fresh != nil {
		t.Errorf("%v, %v", old, fresh)
	}
}

// A zonal shift and a suspended process hold repairs back, which the status and one Event say, and their end, too.
func TestRepairIsPaused(t *testing.T) {
	for reason, pause := range map[string]func(*world, *v1alpha1.NodeGroup) (resume func(*v1alpha1.NodeGroup)){
		repair.ZonalShift: func(w *world, _ *v1alpha1.NodeGroup) func(*v1alpha1.NodeGroup) {
			w.shift(t, "us-east-1a")
			return func(*v1alpha1.NodeGroup) { w.shift(t) }
		},
		repair.Suspended: func(_ *world, group *v1alpha1.NodeGroup) func(*v1alpha1.NodeGroup) {
			group.Spec.AutoScaling = &v1alpha1.AutoScaling{SuspendedProcesses: []string{v1alpha1.ProcessTerminate}}
			return func(group *v1alpha1.NodeGroup) { group.Spec.AutoScaling = nil }
		},
		repair.TooManyUnhealthy: func(_ *world, group *v1alpha1.NodeGroup) func(*v1alpha1.NodeGroup) {
			group.Spec.EKS.NodeRepairConfig.MaxUnhealthyNodeThresholdPercentage = new(int32(99))
			return func(group *v1alpha1.NodeGroup) {
				group.Spec.EKS.NodeRepairConfig.MaxUnhealthyNodeThresholdPercentage = nil
			}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			w := sickWorld(t, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", nil)
			group := w.group(t)
			resume := pause(w, group)
			if err := w.management.Update(t.Context(), group); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(time.Hour)
			for range 2 {
				if again := mustReconcile(t, w.groups(), "workers"); again.RequeueAfter == 0 || again.RequeueAfter > heldAgain {
					t.Errorf("it is looked at again after %v", again.RequeueAfter)
				}
			}
			status := w.group(t).Status.Repair
			if old, _ := w.all(t); old == nil || status.HeldReason != reason || status.HeldMessage == "" || w.events.count("RepairPaused") != 1 {
				t.Errorf("%v, %+v, %q", old, status, w.events.list)
			}
			group = w.group(t)
			resume(group)
			if err := w.management.Update(t.Context(), group); err != nil {
				t.Fatal(err)
			}
			mustReconcile(t, w.groups(), "workers")
			if old, _ := w.all(t); old != nil || w.events.count("RepairResumed") != 1 {
				t.Errorf("afterwards: %v, %q", old, w.events.list)
			}
		})
	}
}

// shift has the cluster be shifted away from zones.
func (w *world) shift(t *testing.T, zones ...string) {
	t.Helper()
	of := newTestCluster()
	if err := w.management.Get(t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
		t.Fatal(err)
	}
	of.Status.ShiftedZones = zones
	if err := w.management.Status().Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
}

// A machine that is not a node a quarter of an hour after its launch is an issue of its group, with what keeps it.
func TestMachinesThatDoNotJoin(t *testing.T) {
	m := newTestMachine()
	w := newWorld(t, newTestGroup(1), m, newTestCluster())
	w.setStatus(t, m, func(s *v1alpha1.MachineStatus) {
		s.Phase = v1alpha1.MachineJoining
		s.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(w.now)}}
		setReady(&s.Conditions, w.now, 1, metav1.ConditionFalse, "Late", "its next step is APIReached")
	})
	ready := func() metav1.Condition {
		t.Helper()
		return *meta.FindStatusCondition(w.group(t).Status.Conditions, v1alpha1.ConditionReady)
	}
	if again := mustReconcile(t, w.groups(), "workers"); ready().Reason != "Joining" || again.RequeueAfter != 15*time.Minute {
		t.Errorf("at once: %+v, again after %v", ready(), again.RequeueAfter)
	}
	w.now = w.now.Add(15 * time.Minute)
	for range 2 {
		mustReconcile(t, w.groups(), "workers")
	}
	if is := ready(); is.Reason != "NodeCreationFailure" || is.Message != "0 of 1 machine is Ready; "+id+" is not a node 15m0s after its launch: its next step is APIReached" {
		t.Errorf("%+v", is)
	}
	if n := w.events.count("NodeCreationFailure"); n != 1 {
		t.Errorf("%d Events: %q", n, w.events.list)
	}
	w.setStatus(t, w.machine(t), func(s *v1alpha1.MachineStatus) {
		s.Phase = v1alpha1.MachineReady
		s.Join = append(s.Join, v1alpha1.JoinRecord{Step: v1alpha1.StepReady, Time: metav1.NewMicroTime(w.now)})
	})
	if is := ready(); is.Status != metav1.ConditionTrue {
		t.Errorf("once it is a node: %+v", is)
	}
}
