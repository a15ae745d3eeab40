// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/clusternetwork"
)

const ownRange = "172.31.15.128/25"

// inSubnets is a world whose machines' pods have addresses of the machines' subnets.
func inSubnets(t *testing.T, objects ...client.Object) (*world, *nodeRanges) {
	t.Helper()
	w := newWorld(t, objects...)
	w.Network.PodsInSubnets = true
	w.provider.podRange = netip.MustParsePrefix(ownRange)
	return w, &nodeRanges{parts: w.parts, given: map[netip.Prefix]types.UID{}}
}

func host(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)}}
}

func (w *world) rangeOf(t *testing.T, name string) string {
	t.Helper()
	node := &corev1.Node{}
	w.get(t, w.cluster, node, name)
	if want := []string{node.Spec.PodCIDR}; node.Spec.PodCIDR != "" && fmt.Sprint(node.Spec.PodCIDRs) != fmt.Sprint(want) {
		t.Errorf("podCIDRs %v", node.Spec.PodCIDRs)
	}
	return node.Spec.PodCIDR
}

// A machine has its range before it has a Node, and the Node has what the machine has.
func TestOwnRange(t *testing.T) {
	w, ranges := inSubnets(t, newTestMachine())
	w.Network.PodSubnets = []clusternetwork.Subnet{{ID: "subnet-000000000000000aa", Zone: "us-east-1a"}}
	r := w.machines()
	mustReconcile(t, r, id)
	if asked := w.provider.request.PodSubnetIDs; len(asked) != 1 || asked[0] != "subnet-000000000000000aa" {
		t.Errorf("it asks for a range of %v", asked)
	}
	m := w.machine(t)
	if m.Status.PodCIDR != ownRange || w.provider.request.Pods != 110 || w.routes.set[netip.MustParsePrefix(ownRange)] != netip.MustParseAddr("192.168.64.11") {
		t.Errorf("podCIDR %q of %d pods, routes %v", m.Status.PodCIDR, w.provider.request.Pods, w.routes.set)
	}
	node := newTestNode(corev1.ConditionTrue)
	node.Spec.PodCIDR = ""
	if err := w.cluster.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := ranges.Reconcile(t.Context(), request(nodeName)); err != nil {
			t.Fatal(err)
		}
		if got := w.rangeOf(t, nodeName); got != ownRange {
			t.Errorf("the Node has %q", got)
		}
	}
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady")
}

// A Node whose machine's range is not told yet waits for it, and gets no other.
func TestOwnRangeIsWaitedFor(t *testing.T) {
	for name, m := range map[string]*v1alpha1.Machine{"by its name": newTestMachine(), "by what it says": newTestMachine()} {
		if name == "by its name" {
			m.Status.NodeName = nodeName
		}
		node := newTestNode(corev1.ConditionFalse)
		node.Spec.PodCIDR = ""
		w, ranges := inSubnets(t, m, node)
		result, err := ranges.Reconcile(t.Context(), request(nodeName))
		if err != nil || result.RequeueAfter != rangeSoon || w.rangeOf(t, nodeName) != "" {
			t.Errorf("%s: %+v, %v, %q", name, result, err, w.rangeOf(t, nodeName))
		}
	}
}

// A node that wrote another range into its Node gets nothing by it, and people are told.
func TestOwnRangeIsNotTheNodes(t *testing.T) {
	w, _ := inSubnets(t, newTestMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	if err := w.cluster.Create(t.Context(), newTestNode(corev1.ConditionTrue)); err != nil {
		t.Fatal(err)
	}
	if _, err := reconcileOnce(t, r, id); err == nil || !strings.Contains(err.Error(), "claims the pod range \"10.244.1.0/24\"") {
		t.Errorf("error %v", err)
	}
	want(t, w.machine(t), v1alpha1.MachineJoining, "RouteFailed")
	if _, ok := w.routes.set[netip.MustParsePrefix(ownRange)]; len(w.routes.set) != 1 || !ok || w.machine(t).Status.PodCIDR != ownRange {
		t.Errorf("routes %v, podCIDR %q", w.routes.set, w.machine(t).Status.PodCIDR)
	}
}

// The route of a machine's own range goes with the machine: by now it may lead to another one.
func TestOwnRangeMayBeAnothers(t *testing.T) {
	w, _ := inSubnets(t, newTestMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	next := netip.MustParseAddr("192.168.64.12")
	w.provider.onEnd = func() { w.routes.set[netip.MustParsePrefix(ownRange)] = next }
	if err := w.management.Delete(t.Context(), w.machine(t)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := reconcileOnce(t, r, id); err != nil {
			t.Fatal(err)
		}
	}
	if w.get(t, w.management, &v1alpha1.Machine{}, id) || w.routes.set[netip.MustParsePrefix(ownRange)] != next {
		t.Errorf("routes %v", w.routes.set)
	}
}

// Nodes that are no machine of the VPC's have the first ranges of the cluster's that nobody has; what was written a
// moment ago counts before it can be read.
func TestRangesOfOtherNodes(t *testing.T) {
	taken := host("taken")
	taken.Spec.PodCIDR = "10.244.1.0/24"
	odd := host("odd")
	odd.Spec.PodCIDR = "172.31.15.0/25"
	w, ranges := inSubnets(t, taken, odd, host("a"), host("b"), host("c"))
	for name, want := range map[string]string{"a": "10.244.0.0/24"} {
		if _, err := ranges.Reconcile(t.Context(), request(name)); err != nil || w.rangeOf(t, name) != want {
			t.Errorf("%s has %q, %v", name, w.rangeOf(t, name), err)
		}
	}
	ranges.given[netip.MustParsePrefix("10.244.2.0/24")] = "uid of c" // which memory does not show yet
	ranges.given[netip.MustParsePrefix("10.244.3.0/24")] = "uid of one that is gone"
	if _, err := ranges.Reconcile(t.Context(), request("b")); err != nil || w.rangeOf(t, "b") != "10.244.3.0/24" {
		t.Errorf("b has %q, %v", w.rangeOf(t, "b"), err)
	}
	ranges.Network.PodCIDR = netip.MustParsePrefix("10.244.0.0/23")
	result, err := ranges.Reconcile(t.Context(), request("c"))
	if err != nil || result.RequeueAfter != rangeLater || w.rangeOf(t, "c") != "" {
		t.Errorf("with none left: %+v, %v, %q", result, err, w.rangeOf(t, "c"))
	}
	if _, err := ranges.Reconcile(t.Context(), request("gone")); err != nil {
		t.Error(err)
	}
}

// A simulated machine has no range of its subnet, and none is routed to it.
func TestRangeOfASimulatedMachine(t *testing.T) {
	m := newTestMachine()
	m.Spec.Provider = v1alpha1.ProviderSimulated
	w, ranges := inSubnets(t, m)
	w.Providers[v1alpha1.ProviderSimulated] = w.provider
	w.provider.podRange = netip.Prefix{}
	r := w.machines()
	mustReconcile(t, r, id)
	if w.provider.request.Pods != 0 {
		t.Errorf("it asks for %d addresses", w.provider.request.Pods)
	}
	node := newTestNode(corev1.ConditionTrue)
	node.Spec.PodCIDR = ""
	if err := w.cluster.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if _, err := ranges.Reconcile(t.Context(), request(nodeName)); err != nil || w.rangeOf(t, nodeName) != "10.244.0.0/24" {
		t.Errorf("%q, %v", w.rangeOf(t, nodeName), err)
	}
	mustReconcile(t, r, id)
	if m := w.machine(t); m.Status.PodCIDR != "" || len(w.routes.set) != 0 {
		t.Errorf("podCIDR %q, routes %v", m.Status.PodCIDR, w.routes.set)
	}
}

// What is missing of a subnet is said of a machine as EKS says it.
func TestNoRangeLeft(t *testing.T) {
	for err, reason := range map[error]string{machine.ErrSubnetFull: reasonFull, machine.ErrNoPodSubnet: reasonPodZone} {
		w, _ := inSubnets(t, newTestMachine())
		w.provider.launchError = fmt.Errorf("allocating addresses of pods: %w", err)
		if _, err := reconcileOnce(t, w.machines(), id); err == nil {
			t.Error("no error")
		}
		want(t, w.machine(t), v1alpha1.MachinePending, reason)
	}
}

// Others write into a new Node at the same time, which is not a reason to write its range later. Another Node of the name is
// not meant.
func TestRangeOfANodeThatOthersWriteTo(t *testing.T) {
	w, ranges := inSubnets(t, host("lab-1"))
	w.faults.before = func(call string) {
		if call != "cluster patch *v1.Node" {
			return
		}
		node := &corev1.Node{}
		w.get(t, w.cluster, node, "lab-1")
		node.Labels = map[string]string{"written": "meanwhile"}
		if err := w.cluster.Update(t.Context(), node); err != nil {
			t.Error(err)
		}
	}
	if result, err := ranges.Reconcile(t.Context(), request("lab-1")); err != nil || result.RequeueAfter != 0 || w.rangeOf(t, "lab-1") == "" {
		t.Errorf("range %q, %+v, %v", w.rangeOf(t, "lab-1"), result, err)
	}
	if calls := w.faults.calls["cluster patch *v1.Node"]; calls != 1 {
		t.Errorf("the Node was patched %d times, want once", calls)
	}
	node := host("lab-1")
	patch := rangePatch(node)
	node.Spec.PodCIDR = "10.244.0.0/24"
	if data, err := patch.Data(node); err != nil || string(data) != `{"metadata":{"uid":"uid of lab-1"},"spec":{"podCIDR":"10.244.0.0/24"}}` {
		t.Errorf("the patch is %s, %v; want one that names the Node by its UID", data, err)
	}
}
