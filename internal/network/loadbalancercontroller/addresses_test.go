// SPDX-License-Identifier: Apache-2.0

package loadbalancercontroller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/network/loadbalancer"
)

func TestInternal(t *testing.T) {
	w := newWorld(t, func(s *corev1.Service) {
		s.Annotations = map[string]string{"service.beta.kubernetes.io/aws-load-balancer-scheme": "internal"}
	})
	w.mustLook()
	w.expectEntry(entry("172.31.0.9"), "internal")
	if diff := cmp.Diff([]string{"Normal EnsuredLoadBalancer it answers at web.elb in the VPC (172.31.0.9), and nowhere else, as it is internal"}, w.said()); diff != "" {
		t.Error(diff)
	}
}

// A Service that gets no address as the range on the host is full says so, and is looked at again.
func TestAFullRange(t *testing.T) {
	w := newWorld(t)
	w.balances.full = fmt.Errorf("%w: all of 127.64.0.0/30 are taken", loadbalancer.ErrRangeFull)
	if result := w.mustLook(); result.RequeueAfter != failedAgain {
		t.Errorf("%+v", result)
	}
	w.expectEntry(nil, "full")
	want := "Warning LoadBalancerRangeFull no address is left for load balancers on the host: all of 127.64.0.0/30 are taken: delete load balancers, or choose another range for new ones by `muster up --load-balancer-range`"
	if diff := cmp.Diff([]string{want}, w.said()); diff != "" {
		t.Error(diff)
	}
	w.balances.full = nil
	w.mustLook()
	w.expectEntry(entry("127.130.1.2"), "with room")
}

// A Service beyond what a cluster may have says so, and is looked at again.
func TestTooMany(t *testing.T) {
	w := newWorld(t)
	w.balances.full = loadbalancer.ErrTooMany
	if result := w.mustLook(); result.RequeueAfter != failedAgain {
		t.Errorf("%+v", result)
	}
	w.expectEntry(nil, "one too many")
	want := "Warning TooManyLoadBalancers a cluster has at most 50 load balancers: delete Services of type LoadBalancer, or put several programs behind one, as by an Ingress"
	if diff := cmp.Diff([]string{want}, w.said()); diff != "" {
		t.Error(diff)
	}
	w.balances.full = nil
	w.mustLook()
	w.expectEntry(entry("127.130.1.2"), "with room")
}

// Programs of the host connect to its loopback from 127.0.0.1, and to its other addresses from those.
func TestSourceRangesOnTheHost(t *testing.T) {
	for address, want := range map[string][]string{
		"127.130.1.2": {
			"Normal EnsuredLoadBalancer it answers at 127.130.1.2 on this host, and at web.elb in the VPC (172.31.0.9)",
			"Warning HostNotInSourceRanges the source ranges do not contain 127.0.0.1, from which programs of this host connect: they are refused; add 127.0.0.0/8 to let them in",
		},
		"198.51.100.7": {"Normal EnsuredLoadBalancer it answers at 198.51.100.7 for whoever reaches this address of the host, and at web.elb in the VPC (172.31.0.9)"},
	} {
		w := newWorld(t, func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"} })
		w.balances.address = address
		w.mustLook()
		w.expectEntry(entry(address), address)
		if diff := cmp.Diff(want, w.said()); diff != "" {
			t.Error(diff)
		}
	}
}
