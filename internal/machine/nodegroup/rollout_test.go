// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/platform/release"
)

// rolling is a world with a group of one machine that is to be replaced. Each step is by a controller that has just
// been started.
func rolling(t *testing.T, force bool) *world {
	t.Helper()
	group, m := newTestGroup(1), newTestMachine()
	group.Spec.Rollout = &v1alpha1.NodeGroupRollout{ID: "u1", Force: force}
	m.Spec.NodeGroupUID = group.UID
	m.Status.Phase = v1alpha1.MachineReady
	w := newWorld(t, group, m, newTestCluster())
	mustReconcile(t, w.groups(), "workers")
	_, fresh := w.all(t)
	fresh.CreationTimestamp = metav1.NewTime(w.now) // an API server sets it
	if err := w.management.Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) all(t *testing.T) (old, fresh *v1alpha1.Machine) {
	t.Helper()
	list := &v1alpha1.MachineList{}
	if err := w.faults.off(func() error { return w.management.List(t.Context(), list) }); err != nil || len(list.Items) > 2 {
		t.Fatalf("%d machines, %v", len(list.Items), err)
	}
	for i := range list.Items {
		if list.Items[i].Name == id {
			old = &list.Items[i]
		} else {
			fresh = &list.Items[i]
		}
	}
	return old, fresh
}

func (w *world) setStatus(t *testing.T, m *v1alpha1.Machine, change func(*v1alpha1.MachineStatus)) {
	t.Helper()
	change(&m.Status)
	if err := w.faults.off(func() error { return w.management.Status().Update(t.Context(), m) }); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, w.groups(), "workers")
}

func becomesReady(s *v1alpha1.MachineStatus) { s.Phase = v1alpha1.MachineReady }

func isDrained(status metav1.ConditionStatus, reason string) func(*v1alpha1.MachineStatus) {
	return func(s *v1alpha1.MachineStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrained, Status: status, Reason: reason, Message: "pods, it says"})
	}
}

func TestRollout(t *testing.T) {
	w := rolling(t, false)
	old, fresh := w.all(t)
	if status := w.group(t).Status.Rollout; fresh == nil || fresh.Spec.Rollout != "u1" || status.Outdated != 1 || status.Phase != v1alpha1.RolloutScaleUp || status.Draining != nil {
		t.Fatalf("%+v, %+v", fresh, status)
	}
	if mustReconcile(t, w.groups(), "workers"); w.group(t).Status.Rollout.Draining != nil {
		t.Error("it is drained before there is another one")
	}
	w.setStatus(t, fresh, becomesReady)
	if status := w.group(t).Status; !slices.Equal(status.Rollout.Draining, []string{old.Name}) || status.Rollout.Phase != v1alpha1.RolloutUpgrade || meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("%+v", status)
	}
	w.setStatus(t, old, isDrained(metav1.ConditionTrue, reasonDrained))
	if old, fresh := w.all(t); old != nil || fresh == nil {
		t.Errorf("%+v, %+v", old, fresh)
	}
	mustReconcile(t, w.groups(), "workers")
	if status := w.group(t).Status; status.Rollout.Outdated != 0 || status.Rollout.Total != 1 || status.Rollout.Phase != v1alpha1.RolloutScaleDown || status.Rollout.Code != "" || status.Replicas != 1 || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("%+v, %+v", status, status.Rollout)
	}
}

func TestRolloutsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		force, stop bool
		with        func(t *testing.T, w *world, old, fresh *v1alpha1.Machine)
		code        string
		stays       bool
	}{
		"pods stay": {with: func(t *testing.T, w *world, old, fresh *v1alpha1.Machine) {
			t.Helper()
			w.setStatus(t, fresh, becomesReady)
			w.setStatus(t, old, isDrained(metav1.ConditionFalse, reasonTimedOut))
		}, code: codeEviction, stays: true},
		"pods stay, and it is forced": {force: true, with: func(t *testing.T, w *world, old, fresh *v1alpha1.Machine) {
			t.Helper()
			w.setStatus(t, fresh, becomesReady)
			w.setStatus(t, old, isDrained(metav1.ConditionFalse, reasonTimedOut))
		}},
		"no new machine": {with: func(t *testing.T, w *world, _, _ *v1alpha1.Machine) {
			t.Helper()
			w.now = w.now.Add(rolloutPatience - time.Second)
			if mustReconcile(t, w.groups(), "workers"); w.group(t).Status.Rollout.Code != "" {
				t.Error("it is given up early")
			}
			w.now = w.now.Add(time.Second)
		}, code: codeCreation, stays: true},
		"no room": {with: func(t *testing.T, w *world, _, fresh *v1alpha1.Machine) {
			t.Helper()
			small(w, map[string]int{subnetA: 0, subnetB: 0})
			fresh.Finalizers = nil
			if err := errors.Join(w.management.Update(t.Context(), fresh), w.management.Delete(t.Context(), fresh)); err != nil {
				t.Fatal(err)
			}
			mustReconcile(t, w.groups(), "workers")
			if status := w.group(t).Status.Rollout; status.Code != "" || !strings.Contains(meta.FindStatusCondition(w.group(t).Status.Conditions, v1alpha1.ConditionReady).Message, "found no free address") || status.Phase != v1alpha1.RolloutScaleUp {
				t.Errorf("%+v", status)
			}
			w.now = w.now.Add(roomPatience)
		}, code: reasonFull, stays: true},
		"no room on the host": {with: func(t *testing.T, w *world, _, fresh *v1alpha1.Machine) {
			t.Helper()
			w.Room = hostroom.New(func() (capacity.Offer, error) { return capacity.Host{CPUs: 2, Memory: 4 << 30}.Offer(1), nil })
			fresh.Finalizers = nil
			if err := errors.Join(w.management.Update(t.Context(), fresh), w.management.Delete(t.Context(), fresh)); err != nil {
				t.Fatal(err)
			}
			mustReconcile(t, w.groups(), "workers")
			if status := w.group(t).Status.Rollout; status.Code != "" || !strings.Contains(meta.FindStatusCondition(w.group(t).Status.Conditions, v1alpha1.ConditionReady).Message, "InsufficientInstanceCapacity") {
				t.Errorf("%+v", status)
			}
			w.now = w.now.Add(roomPatience)
		}, code: codeCreation, stays: true},
		"nobody drains": {with: func(t *testing.T, w *world, _, fresh *v1alpha1.Machine) {
			t.Helper()
			w.setStatus(t, fresh, becomesReady)
			w.now = w.now.Add(w.DrainTime + drainMore - time.Second)
			if mustReconcile(t, w.groups(), "workers"); w.group(t).Status.Rollout.Code != "" {
				t.Error("it is given up early")
			}
			w.now = w.now.Add(time.Second)
		}, code: codeEviction, stays: true},
		"stopped": {with: func(t *testing.T, w *world, _, fresh *v1alpha1.Machine) {
			t.Helper()
			w.setStatus(t, fresh, becomesReady)
			group := w.group(t)
			group.Spec.Rollout.Stopped = true
			if err := w.management.Update(t.Context(), group); err != nil {
				t.Fatal(err)
			}
		}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := rolling(t, c.force)
			old, fresh := w.all(t)
			c.with(t, w, old, fresh)
			mustReconcile(t, w.groups(), "workers")
			mustReconcile(t, w.groups(), "workers")
			status := w.group(t).Status.Rollout
			old, fresh = w.all(t)
			if status.Code != c.code || (old != nil) != c.stays || (fresh != nil && alive(*fresh)) == c.stays || status.Draining != nil {
				t.Errorf("%+v: old %v, new %v", status, old != nil, fresh != nil && alive(*fresh))
			}
			if c.code == codeEviction && !strings.Contains(status.Message, "pods, it says") && !strings.Contains(status.Message, "its pods are about to be evicted") {
				t.Error(status.Message)
			}
		})
	}
}

// The machine that a rollout replaces is drained while it lives, and takes pods again if the rollout ends without it.
func TestAMachineThatIsReplaced(t *testing.T) {
	group, m := newTestGroup(1), newTestMachine()
	group.Spec.Rollout, group.Status.Rollout = &v1alpha1.NodeGroupRollout{ID: "u1"}, &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Phase: v1alpha1.RolloutUpgrade, Draining: []string{id}}
	m.Spec.Labels, m.Spec.Taints = group.Spec.Labels, group.Spec.Taints
	w := newWorld(t, group, m, newTestNode(corev1.ConditionTrue), running("web-0"))
	w.faults.evict = func(c client.Client, pod client.Object) error {
		return w.faults.off(func() error { return c.Delete(t.Context(), pod) })
	}
	w.now = time.Now()
	for range 3 {
		mustReconcile(t, w.machines(), id)
	}
	m, node := w.machine(t), &corev1.Node{}
	w.get(t, w.cluster, node, nodeName)
	if condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained); condition == nil || condition.Reason != reasonDraining ||
		!strings.Contains(condition.Message, "replaced then only if the rollout is forced") || m.Status.Phase != v1alpha1.MachineReady || !node.Spec.Unschedulable {
		t.Errorf("%+v, %s, cordoned: %v", condition, m.Status.Phase, node.Spec.Unschedulable)
	}
	w.ends(t, "web-0")
	mustReconcile(t, w.machines(), id)
	if m := w.machine(t); drainReason(m) != reasonDrained {
		t.Errorf("%+v", m.Status.Conditions)
	}
	is := w.group(t)
	is.Spec.Rollout.Stopped = true
	if err := w.management.Update(t.Context(), is); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, w.machines(), id)
	w.get(t, w.cluster, node, nodeName)
	if m := w.machine(t); drainReason(m) != "" || node.Spec.Unschedulable {
		t.Errorf("%+v, cordoned: %v", m.Status.Conditions, node.Spec.Unschedulable)
	}
}

// Two machines of four are replaced at a time, and the controller, which is started anew for each look, never has more
// going on than that.
func TestRolloutInParallel(t *testing.T) {
	group := newTestGroup(4)
	group.Spec.Rollout, group.Spec.EKS.UpdateConfig.MaxUnavailable = &v1alpha1.NodeGroupRollout{ID: "u1"}, 2
	objects := []client.Object{group, newTestCluster()}
	for _, name := range []string{"i-a", "i-b", "i-c", "i-d"} {
		m := newTestMachine()
		m.Name, m.UID, m.Spec.NodeGroupUID, m.Status.Phase = name, types.UID(name), group.UID, v1alpha1.MachineReady
		objects = append(objects, m)
	}
	w := newWorld(t, objects...)
	var said []string
	for range 20 {
		mustReconcile(t, w.groups(), "workers")
		is := w.group(t)
		status := is.Status.Rollout
		if ready := meta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConditionReady); len(said) == 0 || said[len(said)-1] != ready.Message {
			said = append(said, ready.Message)
		}
		if status.Phase == v1alpha1.RolloutScaleDown {
			break
		}
		machines := w.list(t)
		if len(status.Draining) > 2 || len(machines) > 8 {
			t.Fatalf("%d machines, %v are drained", len(machines), status.Draining)
		}
		for i := range machines {
			m := &machines[i]
			if slices.Contains(status.Draining, m.Name) {
				isDrained(metav1.ConditionTrue, reasonDrained)(&m.Status)
			}
			m.Status.Phase = v1alpha1.MachineReady
			if err := w.management.Status().Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := w.list(t)
	if len(left) != 4 || slices.ContainsFunc(left, func(m v1alpha1.Machine) bool { return m.Spec.Rollout != "u1" }) {
		t.Errorf("%+v", left)
	}
	want := []string{
		"ScaleUp: additional machines are made; to be replaced: 4 machines",
		"Upgrade: 0 of 4 machines replaced; 8 of 8 machines are Ready; i-a: its pods are about to be evicted; i-b: its pods are about to be evicted",
		"Upgrade: 0 of 4 machines replaced; 6 of 6 machines are Ready; i-a: pods, it says; i-b: pods, it says",
		"Upgrade: 2 of 4 machines replaced; 6 of 6 machines are Ready; i-c: its pods are about to be evicted; i-d: its pods are about to be evicted",
		"Upgrade: 2 of 4 machines replaced; 4 of 4 machines are Ready; i-c: pods, it says; i-d: pods, it says",
		"4 of 4 machines are Ready",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

// New machines are spread over the zones as if those that they replace were gone already.
func TestRolloutSpreadsAnew(t *testing.T) {
	group := newTestGroup(2)
	group.Spec.Rollout = &v1alpha1.NodeGroupRollout{ID: "u1"}
	objects := []client.Object{group, newTestCluster()}
	for _, name := range []string{"i-a", "i-b"} {
		m := newTestMachine()
		m.Name, m.UID, m.Spec.NodeGroupUID, m.Spec.SubnetID, m.Status.Phase = name, types.UID(name), group.UID, subnetA, v1alpha1.MachineReady
		objects = append(objects, m)
	}
	w := newWorld(t, objects...)
	mustReconcile(t, w.groups(), "workers")
	if got := placed(t, w); got != "3 1 0" {
		t.Errorf("machines are in %s", got)
	}
}

// A rollout that keeps current machines replaces those of another minor or launch template alone.
func TestCurrentMachinesAreKept(t *testing.T) {
	group := newTestGroup(1)
	group.Spec.Rollout, group.Status.Version = &v1alpha1.NodeGroupRollout{ID: "u1", KeepCurrent: true}, release.Default().Minor()
	for name, c := range map[string]struct {
		change func(*v1alpha1.MachineSpec)
		want   bool
	}{
		"current": {func(*v1alpha1.MachineSpec) {}, false},
		"another template": {func(s *v1alpha1.MachineSpec) {
			s.LaunchTemplate = &v1alpha1.NodeGroupLaunchTemplate{InstanceType: "m5.large"}
		}, true},
		"another minor": {func(s *v1alpha1.MachineSpec) { s.ImageID = ami.OfRelease(release.All()[0]) }, true},
		"made for it":   {func(s *v1alpha1.MachineSpec) { s.Rollout, s.ImageID = "u1", ami.OfRelease(release.All()[0]) }, false},
	} {
		m := newTestMachine()
		m.Spec.LaunchTemplate, m.Spec.ImageID = group.Spec.Launched(), ami.OfRelease(release.Default())
		c.change(&m.Spec)
		if got := outdated(m, group); got != c.want {
			t.Errorf("%s: to be replaced: %v", name, got)
		}
	}
}

// The nodes of machines that are to be replaced later take no pods meanwhile, unless somebody says that they should, and
// do so again if the rollout ends before.
func TestNodesOfMachinesToBeReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		strategy v1alpha1.UpdateStrategy
		cordoned bool // by somebody, before
		out      bool // of load balancers, likewise
		want     bool
		after    bool
	}{
		"cordoned":         {want: true},
		"one after other":  {strategy: v1alpha1.StrategyMinimal},
		"by somebody else": {cordoned: true, want: true, after: true},
		"out by somebody":  {out: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			group, m, node := newTestGroup(1), newTestMachine(), newTestNode(corev1.ConditionTrue)
			group.Spec.Rollout, group.Status.Rollout = &v1alpha1.NodeGroupRollout{ID: "u1"}, &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Phase: v1alpha1.RolloutUpgrade}
			group.Spec.EKS.UpdateConfig.UpdateStrategy = c.strategy
			m.Spec.Labels, m.Spec.Taints = group.Spec.Labels, group.Spec.Taints
			node.Spec.Unschedulable = c.cordoned
			if c.out {
				node.Labels[corev1.LabelNodeExcludeBalancers] = "mine"
			}
			w := newWorld(t, group, m, node)
			is := func() bool {
				t.Helper()
				mustReconcile(t, w.machines(), id)
				mustReconcile(t, w.machines(), id)
				w.get(t, w.cluster, node, nodeName)
				return node.Spec.Unschedulable
			}
			if got := is(); got != c.want {
				t.Errorf("during the rollout it is cordoned: %v", got)
			}
			if label, out := node.Labels[corev1.LabelNodeExcludeBalancers]; out != (c.out || c.want && !c.cordoned) || c.out && label != "mine" {
				t.Errorf("during the rollout it is out of load balancers: %v, %q", out, label)
			}
			if c.want && !c.cordoned {
				node.Spec.Unschedulable = false
				if err := w.cluster.Update(t.Context(), node); err != nil {
					t.Fatal(err)
				}
				if is() {
					t.Error("it is cordoned although somebody has uncordoned it")
				}
			}
			wanted := w.group(t)
			wanted.Spec.Rollout.Stopped = true
			if err := w.management.Update(t.Context(), wanted); err != nil {
				t.Fatal(err)
			}
			if got := is(); got != c.after || node.Annotations[v1alpha1.AnnotationCordoned] != "" {
				t.Errorf("after the rollout it is cordoned: %v, %v", got, node.Annotations)
			}
			if _, out := node.Labels[corev1.LabelNodeExcludeBalancers]; out != c.out {
				t.Errorf("after the rollout it is out of load balancers: %v", out)
			}
		})
	}
}

// A machine that the cluster refuses for a while is an issue of its group, in EKS's word and with the rule that refused
// it.
func TestAGroupWhoseMachineIsRefused(t *testing.T) {
	m := newTestMachine()
	w := newWorld(t, newTestGroup(1), m, newTestCluster())
	m = w.machine(t)
	w.setStatus(t, m, func(s *v1alpha1.MachineStatus) {
		s.Phase = v1alpha1.MachineJoining
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionIdentity, Status: metav1.ConditionFalse, Reason: "Refused", Message: "refused by rule entry: no access entry for role x", LastTransitionTime: metav1.NewTime(w.now),
		})
	})
	if ready := meta.FindStatusCondition(w.group(t).Status.Conditions, v1alpha1.ConditionReady); ready.Reason == "AccessDenied" {
		t.Errorf("at once: %+v", ready)
	}
	w.now = w.now.Add(refusedFor)
	if again := mustReconcile(t, w.groups(), "workers"); again.RequeueAfter == 0 {
		t.Error("it is not looked at again")
	}
	ready := meta.FindStatusCondition(w.group(t).Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != "AccessDenied" || ready.Message != "0 of 1 machine is Ready; "+id+": refused by rule entry: no access entry for role x" {
		t.Errorf("%+v", ready)
	}
}

// A change of a group replaces nothing without a rollout, also after one that kept machines: these are of what the group
// was of then.
func TestKeptMachinesOutliveTheirRollout(t *testing.T) {
	group, m := newTestGroup(1), newTestMachine()
	group.Spec.Rollout = &v1alpha1.NodeGroupRollout{ID: "u1", KeepCurrent: true}
	m.Spec.NodeGroupUID, m.Spec.LaunchTemplate, m.Spec.ImageID, m.Status.Phase = group.UID, group.Spec.Launched(), ami.OfRelease(release.Default()), v1alpha1.MachineReady
	w := newWorld(t, group, m, newTestCluster())
	mustReconcile(t, w.groups(), "workers")
	if status := w.group(t).Status.Rollout; status.Phase != v1alpha1.RolloutScaleDown || status.Outdated != 0 {
		t.Fatalf("%+v", status)
	}
	w.changeGroup(t, func(s *v1alpha1.NodeGroupSpec) {
		s.LaunchTemplate = &v1alpha1.NodeGroupLaunchTemplate{InstanceType: "m5.large"}
	})
	for range 2 {
		mustReconcile(t, w.groups(), "workers")
	}
	if status := w.group(t).Status; status.Rollout.Phase != v1alpha1.RolloutScaleDown || len(w.list(t)) != 1 || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("%d machines, %+v", len(w.list(t)), status.Rollout)
	}
	w.changeGroup(t, func(s *v1alpha1.NodeGroupSpec) { s.Rollout.ID = "u2" })
	if mustReconcile(t, w.groups(), "workers"); w.group(t).Status.Rollout.Phase != v1alpha1.RolloutScaleUp {
		t.Errorf("the next rollout: %+v", w.group(t).Status.Rollout)
	}
}
