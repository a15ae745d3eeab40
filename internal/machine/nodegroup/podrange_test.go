// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"net/netip"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// otherMachine has a range of pods.
func otherMachine(podCIDR string) *v1alpha1.Machine {
	m := newTestMachine()
	m.ObjectMeta = metav1.ObjectMeta{Name: "i-0fedcba9876543210", UID: "other-uid"}
	m.Status.PodCIDR = podCIDR
	return m
}

// A node says itself which range its pods have when it makes its Node. What it may not have is not routed to it.
func TestPodRangeRefused(t *testing.T) {
	for name, podCIDR := range map[string]string{
		"another machine's address":   "192.168.64.12/32",
		"the machines' network":       "192.168.64.0/18",
		"the API server's address":    "192.168.64.2/32",
		"everything":                  "0.0.0.0/0",
		"all pods":                    "10.244.0.0/16",
		"pods of several nodes":       "10.244.4.0/23",
		"a part of a node's pods":     "10.244.7.0/25",
		"Services":                    "10.100.0.0/24",
		"another machine's pods":      "10.244.7.0/24",
		"addresses and not a network": "10.244.8.1/24",
		"IPv6":                        "fd00::/24",
		"IPv4 in IPv6":                "::ffff:10.244.8.0/120",
		"nothing that can be read":    "10.244.8.0",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newTestMachine(), otherMachine("10.244.7.0/24"))
			r := w.machines()
			mustReconcile(t, r, id)
			node := newTestNode(corev1.ConditionTrue)
			node.Spec.PodCIDR = podCIDR
			if err := w.cluster.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			_, err := reconcileOnce(t, r, id)
			if err == nil || !strings.Contains(err.Error(), "nothing is routed to it") {
				t.Errorf("error %v", err)
			}
			if len(w.routes.set) > 0 {
				t.Errorf("routes: %v", w.routes.set)
			}
			m := w.machine(t)
			want(t, m, v1alpha1.MachineJoining, "RouteFailed")
			if m.Status.PodCIDR != "" {
				t.Errorf("podCIDR = %q", m.Status.PodCIDR)
			}
		})
	}
}

// A Node that is made anew with a range that it may not have loses the one that it had, which may be given to another.
func TestPodRangeOfNewNodeRefused(t *testing.T) {
	w, r := joined(t)
	if err := w.cluster.Delete(t.Context(), newTestNode(corev1.ConditionTrue)); err != nil {
		t.Fatal(err)
	}
	node := newTestNode(corev1.ConditionTrue)
	node.Spec.PodCIDR = "192.168.64.12/32"
	if err := w.cluster.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if _, err := reconcileOnce(t, r, id); err == nil {
		t.Error("no error")
	}
	if len(w.routes.set) > 0 || w.machine(t).Status.PodCIDR != "" {
		t.Errorf("routes: %v, podCIDR = %q", w.routes.set, w.machine(t).Status.PodCIDR)
	}
	if owner := r.ranges.take(netip.MustParsePrefix("10.244.1.0/24"), "another"); owner != "another" {
		t.Errorf("its range is still %s's", owner)
	}
}

// Of two machines that say the same at once, before either's status tells, one is refused.
func TestPodRangeOfTwoAtOnce(t *testing.T) {
	ranges := newPodRanges()
	to := netip.MustParsePrefix("10.244.1.0/24")
	var owners [2]string
	var group sync.WaitGroup
	for i, name := range []string{"a", "b"} {
		group.Go(func() { owners[i] = ranges.take(to, name) })
	}
	group.Wait()
	if owners[0] != owners[1] || owners[0] == "" {
		t.Errorf("owners: %v", owners)
	}
	loser := map[string]string{"a": "b", "b": "a"}[owners[0]]
	ranges.free(to, loser)
	if owner := ranges.take(to, loser); owner == loser {
		t.Error("who has it not freed it")
	}
}

// Clusters of two VPCs may have the same range of pods.
func TestPodRangeOfAnotherCluster(t *testing.T) {
	other := otherMachine("10.244.1.0/24")
	other.Spec.ClusterName = "blue"
	w := newWorld(t, newTestMachine(), other)
	r := w.machines()
	mustReconcile(t, r, id)
	if err := w.cluster.Create(t.Context(), newTestNode(corev1.ConditionTrue)); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, r, id)
	if got := w.machine(t).Status.PodCIDR; got != "10.244.1.0/24" || len(w.routes.set) != 1 {
		t.Errorf("podCIDR %q, routes %v", got, w.routes.set)
	}
}
