// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/node/bootreport"
)

// pooled is a world with a machine of a warm pool, which reports of its boot.
func pooled(t *testing.T, state v1alpha1.WarmPoolState) (*world, *machines, reporting) {
	t.Helper()
	m := newTestMachine()
	m.Spec.WarmPool = state
	w := newWorld(t, newTestCluster(), newTestGroup(1), m)
	p := reporting{w.provider, map[string]bootreport.Report{}}
	w.Providers[v1alpha1.ProviderLocal] = p
	return w, w.machines(), p
}

var hasBooted = bootreport.Report{Reason: bootreport.Warmed, Message: "it waits"}

// A machine of a pool boots with the lifecycle state of the pool, and is not late, whatever it takes.
func TestMachineWarms(t *testing.T) {
	w, r, p := pooled(t, v1alpha1.WarmRunning)
	if result := mustReconcile(t, r, id); result.RequeueAfter != warmAgain {
		t.Errorf("it is asked again after %v", result.RequeueAfter)
	}
	want(t, w.machine(t), v1alpha1.MachineWarmPending, reasonPreparing)
	if p.request.Lifecycle != "Warmed:Running" || len(w.tokens(t)) != 1 {
		t.Errorf("it was launched as %q, with %d tokens", p.request.Lifecycle, len(w.tokens(t)))
	}
	w.now = w.now.Add(time.Hour)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineWarmPending, reasonPreparing)
	p.reports[id] = hasBooted
	for range 2 {
		mustReconcile(t, r, id)
		want(t, w.machine(t), v1alpha1.MachineWarmRunning, bootreport.Warmed)
	}
	if m := w.machine(t); m.Lifecycle() != "Warmed:Running" || len(w.tokens(t)) != 0 || troubled(m) != "" {
		t.Errorf("%s, %d tokens, %q", m.Lifecycle(), len(w.tokens(t)), troubled(m))
	}
	p.instances[0].State = machine.Stopped // it dies
	delete(p.reports, id)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineWarmPending, reasonPreparing)
	if p.instances[0].State != machine.Running || p.request.Lifecycle != "Warmed:Running" {
		t.Errorf("it is %s as %q", p.instances[0].State, p.request.Lifecycle)
	}
}

// A machine whose boot fails says so, in the condition of its group, too.
func TestMachineDoesNotWarm(t *testing.T) {
	w, r, p := pooled(t, v1alpha1.WarmStopped)
	mustReconcile(t, r, id)
	p.reports[id] = bootreport.Report{Reason: bootreport.UserDataFailed, Message: "exit status 4"}
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineWarmPending, bootreport.UserDataFailed)
	if !strings.Contains(troubled(w.machine(t)), "exit status 4") {
		t.Errorf("%q", troubled(w.machine(t)))
	}
}

// A machine of a pool of stopped ones is shut down when it has booted, and joins as a new one when it is taken.
func TestWarmMachineIsStoppedAndTaken(t *testing.T) {
	w, r, p := pooled(t, v1alpha1.WarmStopped)
	mustReconcile(t, r, id)
	p.reports[id] = hasBooted
	for range 4 {
		mustReconcile(t, r, id)
	}
	want(t, w.machine(t), v1alpha1.MachineWarmStopped, bootreport.Warmed)
	if p.instances[0].State != machine.Stopped || w.faults.calls["Stop"] != 1 || len(p.userData) != 1 {
		t.Errorf("it is %s after %d stops and %d launches", p.instances[0].State, w.faults.calls["Stop"], len(p.userData))
	}
	w.now = w.now.Add(24 * time.Hour)
	w.setPower(t, func(s *v1alpha1.MachineSpec) { s.WarmPool = "" })
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineJoining, "Joining")
	m := w.machine(t)
	if p.request.Lifecycle != "" || len(w.tokens(t)) != 1 || meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionWarmed) != nil || !m.LaunchedAt().Equal(w.now) {
		t.Errorf("launched as %q at %s, with %d tokens: %+v", p.request.Lifecycle, m.LaunchedAt(), len(w.tokens(t)), m.Status.Conditions)
	}
	w.addNode(t, corev1.ConditionTrue)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady")
}

// A machine that runs in a pool is told that it is in service, and is not booted for that.
func TestWarmMachineIsTaken(t *testing.T) {
	w, r, p := pooled(t, v1alpha1.WarmRunning)
	mustReconcile(t, r, id)
	p.reports[id] = hasBooted
	mustReconcile(t, r, id)
	w.setPower(t, func(s *v1alpha1.MachineSpec) { s.WarmPool = "" })
	mustReconcile(t, r, id)
	if p.request.Lifecycle != "" || w.faults.calls["Stop"] != 0 || len(w.tokens(t)) != 1 {
		t.Errorf("launched as %q, stopped %d times, %d tokens", p.request.Lifecycle, w.faults.calls["Stop"], len(w.tokens(t)))
	}
	want(t, w.machine(t), v1alpha1.MachineJoining, "Joining")
}

// A machine that returns to a pool is drained and shut down, and its Node goes; killed at any step, it gets there.
func TestMachineReturnsToThePool(t *testing.T) {
	for _, state := range []v1alpha1.WarmPoolState{v1alpha1.WarmRunning, v1alpha1.WarmStopped} {
		for nth := range 6 {
			w, r, p := pooled(t, "")
			mustReconcile(t, r, id)
			w.addNode(t, corev1.ConditionTrue)
			mustReconcile(t, r, id)
			want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady")
			w.setPower(t, func(s *v1alpha1.MachineSpec) { s.WarmPool = state })
			p.reports[id] = hasBooted
			if nth > 0 {
				w.faults.fail([]string{"Stop", "Launch", "management Patch", "cluster Delete", "Get"}[nth-1], 1)
			}
			for range 12 {
				_, _ = reconcileOnce(t, r, id)
				w.now = w.now.Add(time.Second)
			}
			wanted := map[v1alpha1.WarmPoolState]v1alpha1.MachinePhase{v1alpha1.WarmRunning: v1alpha1.MachineWarmRunning, v1alpha1.WarmStopped: v1alpha1.MachineWarmStopped}[state]
			want(t, w.machine(t), wanted, bootreport.Warmed)
			m := w.machine(t)
			if w.get(t, w.cluster, &corev1.Node{}, nodeName) || len(m.Status.Join) != 1 || meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained) != nil || len(w.tokens(t)) != 0 {
				t.Errorf("%s: join %+v, conditions %+v, %d tokens", state, m.Status.Join, m.Status.Conditions, len(w.tokens(t)))
			}
			if events := strings.Join(w.events.list, "\n"); strings.Contains(events, "Relaunched") {
				t.Errorf("it died:\n%s", events)
			}
		}
	}
}

// A group makes its machines and those of its pool, takes the latter first, and returns machines to it.
func TestGroupHasAWarmPool(t *testing.T) {
	group := newTestGroup(1)
	group.Spec.WarmPool = &v1alpha1.WarmPool{MaxGroupPreparedCapacity: new(int32(3)), ReuseOnScaleIn: true}
	w := newWorld(t, newTestCluster(), group)
	r := w.groups()
	become := func(warm, other v1alpha1.MachinePhase) {
		t.Helper()
		for _, m := range w.list(t) {
			m.Status.Phase = other
			if m.Spec.WarmPool != "" {
				m.Status.Phase = warm
			}
			if err := w.management.Status().Update(t.Context(), &m); err != nil {
				t.Fatal(err)
			}
		}
	}
	warm := func() (names []string) {
		for _, m := range w.list(t) {
			if m.Spec.WarmPool == v1alpha1.WarmStopped && alive(m) {
				names = append(names, m.Name)
			}
		}
		return names
	}
	mustReconcile(t, r, "workers")
	mustReconcile(t, r, "workers")
	if all := w.list(t); len(all) != 3 || len(warm()) != 2 {
		t.Fatalf("%d machines, %d of them warm", len(all), len(warm()))
	}
	become(v1alpha1.MachineWarmStopped, v1alpha1.MachineReady)
	mustReconcile(t, r, "workers")
	wantGroup(t, w.group(t), "Ready", "1 of 1 machine is Ready; in the warm pool: 2 machines")
	if s := w.group(t).Status; s.Replicas != 1 || s.ReadyReplicas != 1 || s.WarmReplicas != 2 || s.WarmReadyReplicas != 2 {
		t.Errorf("status %+v", s)
	}
	before := warm()
	w.scale(t, 2)
	mustReconcile(t, r, "workers")
	if all := w.list(t); len(all) != 3 || len(warm()) != 1 || !slices.Contains(before, warm()[0]) {
		t.Errorf("%d machines, %v of %v are warm", len(all), warm(), before)
	}
	become(v1alpha1.MachineWarmStopped, v1alpha1.MachineReady)
	w.scale(t, 1)
	mustReconcile(t, r, "workers")
	if all := w.list(t); len(all) != 3 || len(warm()) != 2 {
		t.Errorf("%d machines, %v are warm", len(all), warm())
	}
	events := strings.Join(w.events.list, "\n")
	if !strings.Contains(events, "TakenFromWarmPool") || !strings.Contains(events, "ReturnedToWarmPool") {
		t.Errorf("events:\n%s", events)
	}
	of := w.group(t)
	of.Spec.LaunchTemplate.InstanceType = "m5.xlarge"
	if err := w.management.Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, r, "workers")
	for _, m := range w.list(t) {
		if alive(m) && m.Spec.WarmPool != "" && m.Spec.LaunchTemplate.InstanceType != "m5.xlarge" {
			t.Errorf("%s of the old template is warm", m.Name)
		}
	}
	if len(warm()) != 2 {
		t.Errorf("%v are warm", warm())
	}
	of = w.group(t)
	of.DeletionTimestamp = new(metav1.Now())
	if got := planned(of, w.list(t), aims{}, w.now); slices.ContainsFunc(got, func(a plan.Action) bool { return a.Delete == "" }) {
		t.Errorf("a group that is deleted: %+v", got)
	}
}

// A group and its warm pool that are made in one go are spread over zones together, so that taking a machine of the pool makes no zone
// fuller than others.
func TestWarmPoolIsSpreadWithItsGroup(t *testing.T) {
	group := newTestGroup(1)
	group.Spec.WarmPool = &v1alpha1.WarmPool{MaxGroupPreparedCapacity: new(int32(2))}
	w := newWorld(t, newTestCluster(), group)
	small(w, map[string]int{subnetA: 9, subnetB: 9})
	mustReconcile(t, w.groups(), "workers")
	if got := placed(t, w); got != "1 1 0" {
		t.Errorf("machines are in %s", got)
	}
}

// While Launch is suspended, nothing is launched into a warm pool either: the machine that the group would take stays there.
func TestWarmPoolWhileLaunchIsSuspended(t *testing.T) {
	group := newTestGroup(0)
	group.Spec.WarmPool = &v1alpha1.WarmPool{MinSize: 1, MaxGroupPreparedCapacity: new(int32(1))}
	w := newWorld(t, newTestCluster(), group)
	mustReconcile(t, w.groups(), "workers")
	g := w.group(t)
	g.Spec.AutoScaling, g.Spec.ScalingConfig.DesiredSize = &v1alpha1.AutoScaling{SuspendedProcesses: []string{v1alpha1.ProcessLaunch}}, 3
	if err := w.faults.off(func() error { return w.management.Update(t.Context(), g) }); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		mustReconcile(t, w.groups(), "workers")
	}
	if n := len(w.living(t)); n != 1 {
		t.Errorf("%d machines", n)
	}
}

// A group that grows while its cluster is shifted away from a zone leaves the machines of its warm pool there alone: their
// nodes would be cordoned.
func TestWarmMachinesOfAShiftedZoneWait(t *testing.T) {
	group := newTestGroup(0)
	group.Spec.WarmPool = &v1alpha1.WarmPool{MaxGroupPreparedCapacity: new(int32(1))}
	w := newWorld(t, newTestCluster(), group)
	mustReconcile(t, w.groups(), "workers")
	warm := w.list(t)
	if len(warm) != 1 {
		t.Fatalf("%d machines", len(warm))
	}
	at := slices.IndexFunc(w.usage, func(u machine.Usage) bool { return u.ID == string(warm[0].Spec.SubnetID) })
	w.shift(t, w.usage[at].Zone)
	w.scale(t, 1)
	mustReconcile(t, w.groups(), "workers")
	for _, m := range w.list(t) {
		if m.Name == warm[0].Name && alive(m) && m.Spec.WarmPool == "" {
			t.Error("it is taken out of the pool")
		}
		if m.Name != warm[0].Name && m.Spec.SubnetID == warm[0].Spec.SubnetID {
			t.Error("another one is made in the zone")
		}
	}
	if n := len(w.living(t)); n < 1 {
		t.Errorf("%d machines", n)
	}
}
