// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine"
)

// setPower changes the machine's spec.
func (w *world) setPower(t *testing.T, change func(*v1alpha1.MachineSpec)) {
	t.Helper()
	m := w.machine(t)
	change(&m.Spec)
	if err := w.faults.off(func() error { return w.management.Update(t.Context(), m) }); err != nil {
		t.Fatal(err)
	}
}

// node is the machine's Node.
func (w *world) node(t *testing.T) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	if !w.get(t, w.cluster, node, nodeName) {
		t.Fatal("the Node is gone")
	}
	return node
}

func stop(s *v1alpha1.MachineSpec)  { s.PowerState = v1alpha1.PowerStopped }
func start(s *v1alpha1.MachineSpec) { s.PowerState = v1alpha1.PowerRunning }

// A machine that is stopped stays so, whatever its Node says, and has the same name and addresses when it is started.
func TestMachineIsStoppedAndStarted(t *testing.T) {
	w, r := joined(t)
	was := w.machine(t)
	w.setPower(t, stop)
	if result := mustReconcile(t, r, id); result.RequeueAfter != catchUp {
		t.Errorf("goes on after %v", result.RequeueAfter)
	}
	want(t, w.machine(t), v1alpha1.MachineStopped, v1alpha1.ReasonStopping)
	clear(w.routes.set) // which go with it
	for range 2 {
		mustReconcile(t, r, id)
		want(t, w.machine(t), v1alpha1.MachineStopped, v1alpha1.ReasonStopped)
	}
	if got := w.node(t).Spec.Taints; len(got) != 1 || got[0].Key != "node.cloudprovider.kubernetes.io/shutdown" || got[0].Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("the Node of a stopped machine has the taints %v", got)
	}
	if w.provider.instances[0].State != machine.Stopped || len(w.provider.userData) != 1 || len(w.routes.set) > 0 || w.faults.calls["Stop"] != 1 {
		t.Errorf("it is %s after %d launches and %d stops, with the routes %v", w.provider.instances[0].State, len(w.provider.userData), w.faults.calls["Stop"], w.routes.set)
	}
	w.setReady(t, corev1.ConditionUnknown)
	w.now = w.now.Add(time.Hour)
	w.setPower(t, start)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineNotReady, "NodeNotReady")
	if got := w.node(t).Spec.Taints; len(got) != 0 {
		t.Errorf("the Node of a machine that was started has the taints %v", got)
	}
	w.setReady(t, corev1.ConditionTrue)
	mustReconcile(t, r, id)
	m := w.machine(t)
	want(t, m, v1alpha1.MachineReady, "NodeReady")
	if m.Status.NodeName != was.Status.NodeName || m.Status.ProviderID != was.Status.ProviderID || !slices.Equal(m.Status.Addresses, was.Status.Addresses) || len(w.routes.set) != 1 {
		t.Errorf("it was %+v, and is %+v; routes %v", was.Status, m.Status, w.routes.set)
	}
	if at := m.Status.StartedAt; at == nil || !at.Time.Equal(w.now) {
		t.Errorf("it was started at %v, want %v", at, w.now)
	}
	events := strings.Join(w.events.list, "\n")
	if !strings.Contains(events, "Normal Stopped: ") || !strings.Contains(events, "Normal Started: ") || strings.Contains(events, "Relaunched") {
		t.Errorf("events:\n%s", events)
	}
}

// A reboot has no pause before it, as a machine that dies has, and is made once.
func TestMachineReboots(t *testing.T) {
	w, r := joined(t)
	for n := range int64(3) {
		w.setPower(t, func(s *v1alpha1.MachineSpec) { s.Reboots++ })
		for range 3 {
			mustReconcile(t, r, id)
		}
		m := w.machine(t)
		want(t, m, v1alpha1.MachineReady, "NodeReady") // as far as the cluster knows yet
		if m.Status.Reboots != n+1 || w.faults.calls["Stop"] != int(n)+1 || len(w.provider.userData) != int(n)+2 || m.Status.StartedAt != nil {
			t.Errorf("reboot %d: status %+v, %d stops, %d launches", n+1, m.Status, w.faults.calls["Stop"], len(w.provider.userData))
		}
	}
	if events := strings.Join(w.events.list, "\n"); strings.Count(events, "Normal Rebooted: ") != 3 {
		t.Errorf("events:\n%s", events)
	}
}

// A machine that is stopped before it has joined loses its token, and has another one when it is started.
func TestStoppedOnItsWayIn(t *testing.T) {
	w := newWorld(t, newTestMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	first := w.machine(t).Status.BootstrapTokenID
	w.setPower(t, stop)
	for range 2 {
		mustReconcile(t, r, id)
	}
	if m := w.machine(t); len(w.tokens(t)) != 0 || m.Status.BootstrapTokenID != "" {
		t.Errorf("a stopped machine has %d tokens, and %q", len(w.tokens(t)), m.Status.BootstrapTokenID)
	}
	w.setPower(t, start)
	mustReconcile(t, r, id)
	m := w.machine(t)
	want(t, m, v1alpha1.MachineJoining, "Joining")
	if len(w.tokens(t)) != 1 || m.Status.BootstrapTokenID == first || m.Status.BootstrapTokenID == "" {
		t.Errorf("%d tokens, %q after %q", len(w.tokens(t)), m.Status.BootstrapTokenID, first)
	}
}

// A machine that is stopped while its stop fails says so, and is tried again.
func TestStopFailsOnce(t *testing.T) {
	w := newWorld(t, newTestMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	w.setPower(t, stop)
	mustReconcile(t, r, id)
	w.faults.fail("Stop", 1)
	if _, err := reconcileOnce(t, r, id); err == nil {
		t.Error("a stop that fails is not tried again")
	}
	want(t, w.machine(t), v1alpha1.MachineStopped, "StopFailed")
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineStopped, v1alpha1.ReasonStopped)
}

// A machine that joined by a token has another one when it is started, until its node is Ready: by then its certificate
// may have expired, or its disk may be lost. It is good for this node alone.
func TestStartedMachineMayJoinAgain(t *testing.T) {
	w, r := joined(t)
	w.setPower(t, stop)
	for range 3 {
		mustReconcile(t, r, id)
	}
	if len(w.tokens(t)) != 0 {
		t.Error("a stopped machine has a token")
	}
	w.setReady(t, corev1.ConditionUnknown)
	w.now = w.now.Add(time.Hour)
	w.setPower(t, start)
	for range 2 {
		mustReconcile(t, r, id)
	}
	secrets := w.tokens(t)
	if len(secrets) != 1 {
		t.Fatalf("%d tokens", len(secrets))
	}
	bound, err := token.FromSecret(&secrets[0])
	if err != nil || bound.Machine != id || bound.Rejoin != nodeName || w.machine(t).Status.BootstrapTokenID != bound.Token.ID {
		t.Errorf("token %+v, %v", bound, err)
	}
	if last := w.provider.userData[len(w.provider.userData)-1]; last != "token: "+bound.Token.Reveal() || len(w.provider.userData) != 2 {
		t.Errorf("%d launches, the last with %q", len(w.provider.userData), last)
	}
	w.now = w.now.Add(token.Lifetime)
	mustReconcile(t, r, id)
	if now := w.machine(t).Status.BootstrapTokenID; now == bound.Token.ID || len(w.tokens(t)) != 1 || len(w.provider.userData) != 3 {
		t.Errorf("after its end: token %s, %d of them, %d launches", now, len(w.tokens(t)), len(w.provider.userData))
	}
	node := newTestNode(corev1.ConditionTrue)
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(w.now)
	if err := w.faults.off(func() error { return w.cluster.Status().Update(t.Context(), node) }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		mustReconcile(t, r, id)
		w.now = w.now.Add(stepsEvery)
	}
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady")
	if m := w.machine(t); len(w.tokens(t)) != 0 || m.Status.BootstrapTokenID != "" {
		t.Errorf("the token outlives the start: %d, %q", len(w.tokens(t)), m.Status.BootstrapTokenID)
	}
	if err := w.cluster.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, r, id)
	if len(w.tokens(t)) != 0 {
		t.Error("a machine that runs has got a token when its Node went")
	}
}

// A machine whose stop is taken back has run all along, and its pods may read its user data: it gets no token.
func TestStopTakenBack(t *testing.T) {
	w, r := joined(t)
	w.setPower(t, stop)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineStopped, v1alpha1.ReasonStopping)
	w.setPower(t, start)
	for range 2 {
		mustReconcile(t, r, id)
		if m := w.machine(t); len(w.tokens(t)) != 0 || len(w.provider.userData) != 1 || m.Status.StartedAt != nil {
			t.Fatalf("%d tokens, %d launches, started at %v", len(w.tokens(t)), len(w.provider.userData), m.Status.StartedAt)
		}
	}
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady")
}

// A machine that is started by its object alone waits for room on the host, and says so.
func TestStartedWithoutRoom(t *testing.T) {
	w, r := joined(t)
	w.setPower(t, stop)
	for range 2 {
		mustReconcile(t, r, id)
	}
	memory := int64(1 << 30)
	w.Room = hostroom.New(func() (capacity.Offer, error) { return capacity.Host{CPUs: 2, Memory: memory}.Offer(1), nil })
	r = w.machines()
	w.setPower(t, start)
	if result := mustReconcile(t, r, id); result.RequeueAfter != roomAgain {
		t.Errorf("it looks again after %v", result.RequeueAfter)
	}
	want(t, w.machine(t), v1alpha1.MachineNotReady, hostroom.Code)
	if w.provider.instances[0].State != machine.Stopped {
		t.Error("it runs")
	}
	memory = 24 << 30
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady") // as far as the cluster knows yet
	if w.provider.instances[0].State != machine.Running {
		t.Error("it does not run")
	}
}
