// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/machine"
)

// want checks the part of a status that people see.
func want(t *testing.T, m *v1alpha1.Machine, phase v1alpha1.MachinePhase, reason string) {
	t.Helper()
	condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if condition == nil {
		t.Fatal("no condition Ready")
	}
	if m.Status.Phase != phase || condition.Reason != reason || (condition.Status == "True") != (phase == v1alpha1.MachineReady) {
		t.Errorf("phase %s, Ready=%s, %s: %s; want %s, %s", m.Status.Phase, condition.Status, condition.Reason, condition.Message, phase, reason)
	}
}

func (w *world) addNode(t *testing.T, ready corev1.ConditionStatus) {
	t.Helper()
	if err := w.faults.off(func() error { return w.cluster.Create(t.Context(), newTestNode(ready)) }); err != nil {
		t.Fatal(err)
	}
}

func (w *world) setReady(t *testing.T, ready corev1.ConditionStatus) {
	t.Helper()
	err := w.faults.off(func() error { return w.cluster.Status().Update(t.Context(), newTestNode(ready)) })
	if err != nil {
		t.Fatal(err)
	}
}

// joined returns a world with one machine that has joined, and its reconciler.
func joined(t *testing.T) (*world, *machines) {
	t.Helper()
	w := newWorld(t, newTestMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	w.addNode(t, corev1.ConditionTrue)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady")
	return w, r
}

func TestMachineJoins(t *testing.T) {
	w := newWorld(t, newTestMachine())
	r := w.machines()

	result := mustReconcile(t, r, id)
	m := w.machine(t)
	want(t, m, v1alpha1.MachineJoining, "Joining")
	secrets := w.tokens(t)
	if len(secrets) != 1 {
		t.Fatalf("%d token Secrets, want 1", len(secrets))
	}
	bound, err := token.FromSecret(&secrets[0])
	if err != nil || bound.Machine != id || bound.Token.ID != m.Status.BootstrapTokenID {
		t.Errorf("token %+v, %v; status has %s", bound, err, m.Status.BootstrapTokenID)
	}
	if result.RequeueAfter != lateAfter {
		t.Errorf("looks again after %v, want when the machine is late", result.RequeueAfter)
	}
	if diff := cmp.Diff([]string{"token: " + bound.Token.Reveal()}, w.provider.userData); diff != "" {
		t.Errorf("user data (-want +got):\n%s", diff)
	}
	got := []any{m.Status.NodeName, m.Status.ProviderID, m.Status.Addresses, m.Finalizers}
	expected := []any{nodeName, "aws:///us-east-1a/" + id, []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "192.168.64.11"},
		{Type: corev1.NodeInternalDNS, Address: nodeName},
	}, []string{v1alpha1.FinalizerMachine}}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}

	// Nothing new: nothing is written.
	writes := w.faults.calls["management update status *v1alpha1.Machine"]
	mustReconcile(t, r, id)
	if again := w.faults.calls["management update status *v1alpha1.Machine"]; again != writes || len(w.provider.userData) != 1 {
		t.Errorf("without news: %d status writes, %d launches", again-writes, len(w.provider.userData)-1)
	}

	// The Node appears.
	w.addNode(t, corev1.ConditionFalse)
	mustReconcile(t, r, id)
	m = w.machine(t)
	want(t, m, v1alpha1.MachineJoining, "NodeNotReady")
	if len(w.tokens(t)) != 0 || m.Status.BootstrapTokenID != "" {
		t.Error("the token outlives the join")
	}
	if diff := cmp.Diff(map[netip.Prefix]netip.Addr{netip.MustParsePrefix("10.244.1.0/24"): netip.MustParseAddr("192.168.64.11")}, w.routes.set,
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}

	// It becomes Ready, and the audit log tells the steps.
	feed(t, w.steps)
	w.now = w.now.Add(time.Second)
	w.setReady(t, corev1.ConditionTrue)
	if result := mustReconcile(t, r, id); result.RequeueAfter != routesAgain {
		t.Errorf("looks again after %v, want %v", result.RequeueAfter, routesAgain)
	}
	m = w.machine(t)
	want(t, m, v1alpha1.MachineReady, "NodeReady")
	if next := joinlog.Next(m.Status.Join, false); next != "" {
		t.Errorf("step %s is missing", next)
	}
	if m.Status.PodCIDR != "10.244.1.0/24" {
		t.Errorf("podCIDR = %q", m.Status.PodCIDR)
	}
	if diff := cmp.Diff([]string{"Normal Launched: the instance was launched as " + nodeName, "Normal Ready: node " + nodeName + " is Ready"}, w.events.list); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// feed shows the tracker the audit log of package join's tests, which is about this very machine.
func feed(t *testing.T, tracker *joinlog.Tracker) {
	t.Helper()
	data, err := os.ReadFile("../joinlog/testdata/audit.log")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		tracker.Line([]byte(line))
	}
}

func TestMachineTokenRenewed(t *testing.T) {
	w := newWorld(t, newTestMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	first := w.machine(t).Status.BootstrapTokenID
	w.now = w.now.Add(token.Lifetime)
	mustReconcile(t, r, id)
	m := w.machine(t)
	if m.Status.BootstrapTokenID == first || len(w.tokens(t)) != 1 || len(w.provider.userData) != 2 {
		t.Errorf("token %s after %s, %d Secrets, %d launches", m.Status.BootstrapTokenID, first, len(w.tokens(t)), len(w.provider.userData))
	}
	if len(w.events.list) < 2 || !strings.HasPrefix(w.events.list[1], "Normal TokenRenewed") {
		t.Errorf("events: %q", w.events.list)
	}
}

// A service that died after it stored the token, or after the launch, goes on with the same token.
func TestMachineAfterCrash(t *testing.T) {
	for _, call := range []string{"Launch", "management update status *v1alpha1.Machine"} {
		t.Run(call, func(t *testing.T) {
			w := newWorld(t, newTestMachine())
			w.faults.fail(call, 1)
			if _, err := reconcileOnce(t, w.machines(), id); err == nil {
				t.Fatal("no error")
			}
			before := w.tokens(t)
			mustReconcile(t, w.machines(), id)
			after := w.tokens(t)
			if len(before) != 1 || len(after) != 1 || before[0].Name != after[0].Name {
				t.Errorf("tokens before and after: %d, %d", len(before), len(after))
			}
			want(t, w.machine(t), v1alpha1.MachineJoining, "Joining")
		})
	}
}

func TestMachineDiesAndIsBootedAgain(t *testing.T) {
	w, r := joined(t)
	w.provider.instances[0].State = machine.Stopped
	mustReconcile(t, r, id)
	if w.provider.instances[0].State != machine.Running || w.provider.userData[1] != "token: " {
		t.Errorf("instance %v, user data %q", w.provider.instances[0].State, w.provider.userData)
	}
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady") // as far as the cluster knows yet

	// It dies at once: the next boot has a pause before it, in which nothing can be routed to it.
	w.provider.instances[0].State = machine.Stopped
	clear(w.routes.set) // which went with it
	if result := mustReconcile(t, r, id); result.RequeueAfter != time.Second || len(w.provider.userData) != 2 {
		t.Errorf("looks again after %v, %d launches", result.RequeueAfter, len(w.provider.userData))
	}
	w.setReady(t, corev1.ConditionUnknown)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineNotReady, "InstanceStopped")
	if len(w.routes.set) > 0 {
		t.Errorf("routes to a machine that does not run: %v", w.routes.set)
	}
	w.now = w.now.Add(time.Second)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineNotReady, "NodeNotReady")
	if len(w.routes.set) != 1 {
		t.Errorf("routes once it has been booted: %v", w.routes.set)
	}
	if len(w.provider.userData) != 3 {
		t.Errorf("%d launches, want 3", len(w.provider.userData))
	}
}

func TestMachineNodeGone(t *testing.T) {
	w, r := joined(t)
	if err := w.cluster.Delete(t.Context(), newTestNode(corev1.ConditionTrue)); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineNotReady, "NodeMissing")
	if len(w.tokens(t)) != 0 {
		t.Error("a machine that has its certificate got a token")
	}
}

func TestMachineInstanceLost(t *testing.T) {
	w, r := joined(t)
	w.provider.instances = nil
	mustReconcile(t, r, id)
	if m := w.machine(t); m.DeletionTimestamp.IsZero() {
		t.Error("the machine stays")
	}
	mustReconcile(t, r, id)
	if w.get(t, w.management, &v1alpha1.Machine{}, id) {
		t.Error("the machine stays after another look")
	}
}

func TestMachinePodRangeChanges(t *testing.T) {
	w, r := joined(t)
	if err := w.cluster.Delete(t.Context(), newTestNode(corev1.ConditionTrue)); err != nil {
		t.Fatal(err)
	}
	node := newTestNode(corev1.ConditionTrue)
	node.Spec.PodCIDR = "10.244.9.0/24"
	if err := w.cluster.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, r, id)
	if _, ok := w.routes.set[netip.MustParsePrefix("10.244.9.0/24")]; !ok || len(w.routes.set) != 1 {
		t.Errorf("routes: %v", w.routes.set)
	}
}

func TestMachineWithoutProvider(t *testing.T) {
	m := newTestMachine()
	m.Spec.Provider = v1alpha1.ProviderSimulated
	w := newWorld(t, m)
	mustReconcile(t, w.machines(), id)
	want(t, w.machine(t), v1alpha1.MachinePending, "NoProvider")
	if err := w.management.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, w.machines(), id)
	want(t, w.machine(t), v1alpha1.MachineTerminating, "NoProvider")
}

// Another machine's Node under the same name is no Node, and goes when that machine is gone.
func TestMachineForeignNode(t *testing.T) {
	for _, alive := range []bool{false, true} {
		w := newWorld(t, newTestMachine())
		r := w.machines()
		mustReconcile(t, r, id)
		other := newTestMachine()
		other.Name = "i-fffffffffffffffff"
		if alive {
			if err := w.management.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}
		node := newTestNode(corev1.ConditionTrue)
		node.Spec.ProviderID = v1alpha1.ProviderID("us-east-1a", other.Name)
		if err := w.cluster.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		mustReconcile(t, r, id)
		want(t, w.machine(t), v1alpha1.MachineJoining, "Joining")
		if w.get(t, w.cluster, &corev1.Node{}, nodeName) != alive {
			t.Errorf("other machine alive: %v; its Node: %v", alive, !alive)
		}
	}
}

func TestOrphanNode(t *testing.T) {
	foreign := newTestNode(corev1.ConditionTrue)
	foreign.Name, foreign.Spec.ProviderID = "foreign", "gce:///us-east-1a/"+id
	w := newWorld(t, newTestNode(corev1.ConditionTrue), foreign)
	mustReconcile(t, w.machines(), id)
	if w.get(t, w.cluster, &corev1.Node{}, nodeName) {
		t.Error("the Node of a machine that is gone stays")
	}
	if !w.get(t, w.cluster, &corev1.Node{}, "foreign") {
		t.Error("a Node that is none of muster's was removed")
	}
}

// A machine that serves goes on when its record is damaged, and says so.
func TestMachineWithADamagedRecord(t *testing.T) {
	w, r := joined(t)
	w.provider.damaged = true
	if _, err := reconcileOnce(t, r, id); !errors.Is(err, machine.ErrDamaged) {
		t.Errorf("it is tried again because of %v", err)
	}
	m := w.machine(t)
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); m.Status.Phase != v1alpha1.MachineReady || ready.Reason != "ProviderFailed" || !strings.Contains(ready.Message, "damaged machine record /instance.json") {
		t.Errorf("it says %s: %+v", m.Status.Phase, ready)
	}
}

// Each call on the way in fails once, at each of its places; the next try must make up for it, and no error may show a
// token.
func TestMachineEveryCallFails(t *testing.T) {
	inbound := func(t *testing.T, w *world, try func() error) {
		t.Helper()
		for _, step := range []func(){func() {}, func() { w.addNode(t, corev1.ConditionFalse) }, func() { w.setReady(t, corev1.ConditionTrue) }} {
			step()
			for range 3 {
				if try() == nil {
					break
				}
			}
		}
	}
	clean := newWorld(t, newTestMachine())
	r := clean.machines()
	inbound(t, clean, func() error { _, err := reconcileOnce(t, r, id); return err })
	for call, count := range clean.faults.calls {
		for nth := 1; nth <= count; nth++ {
			w := newWorld(t, newTestMachine())
			w.faults.fail(call, nth)
			r := w.machines()
			failed := false
			inbound(t, w, func() error {
				_, err := reconcileOnce(t, r, id)
				if err != nil {
					failed = true
					for _, text := range append(slices.Clone(w.events.list), err.Error()) {
						for _, data := range w.provider.userData {
							if strings.Contains(text, strings.TrimPrefix(data, "token: ")) {
								t.Errorf("%s shows the token: %s", call, text)
							}
						}
					}
				}
				return err
			})
			if !failed {
				t.Errorf("%s, call %d, failed, and nobody heard of it", call, nth)
			}
			m := w.machine(t)
			if m.Status.Phase != v1alpha1.MachineReady || len(w.tokens(t)) != 0 || len(w.provider.instances) != 1 {
				t.Errorf("%s, call %d, failed: phase %s, %d tokens, %d instances", call, nth, m.Status.Phase, len(w.tokens(t)), len(w.provider.instances))
			}
		}
	}
}

// A machine is launched as its template says, and without one as the provider likes.
func TestLaunchTemplate(t *testing.T) {
	for _, template := range []*v1alpha1.NodeGroupLaunchTemplate{
		nil, {InstanceType: "m5.large", MetadataOptions: v1alpha1.MetadataOptions{HTTPPutResponseHopLimit: 2}},
	} {
		m := newTestMachine()
		m.Spec.LaunchTemplate = template
		w := newWorld(t, m)
		mustReconcile(t, w.machines(), id)
		kind, hops := "", 0
		if template != nil {
			kind, hops = "m5.large", 2
		}
		if got := w.provider.request; got.Type != kind || got.HopLimit != hops {
			t.Errorf("launched as %q with %d hops, want %q, %d", got.Type, got.HopLimit, kind, hops)
		}
	}
}

func TestLaunchErrorHidesToken(t *testing.T) {
	w := newWorld(t, newTestMachine())
	w.faults.fail("Launch", 1) // whose error quotes the user data
	_, err := reconcileOnce(t, w.machines(), id)
	bound, tokenErr := token.FromSecret(&w.tokens(t)[0])
	if err == nil || tokenErr != nil {
		t.Fatalf("errors %v, %v", err, tokenErr)
	}
	condition := meta.FindStatusCondition(w.machine(t).Status.Conditions, v1alpha1.ConditionReady)
	for _, text := range append(w.events.list, err.Error(), condition.Message) {
		if strings.Contains(text, bound.Token.Reveal()) || !strings.Contains(text, bound.Token.ID) {
			t.Errorf("shows the token, or not its id: %s", text)
		}
	}
	want(t, w.machine(t), v1alpha1.MachinePending, "LaunchFailed")
}

func TestStaleStatusIsNotWritten(t *testing.T) {
	w := newWorld(t, newTestMachine())
	stale := w.machine(t)
	mustReconcile(t, w.machines(), id)
	before := stale.DeepCopy()
	stale.Status.Phase = v1alpha1.MachineReady
	result, err := again(w.machines().writeStatus(t.Context(), before, stale))
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("a conflict gives %v, %v; want another look soon", result, err)
	}
	if w.machine(t).Status.Phase != v1alpha1.MachineJoining {
		t.Error("a status from an old look was written over a new one")
	}
}
