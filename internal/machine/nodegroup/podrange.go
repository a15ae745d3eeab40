// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// podRangeBits is the size of the range that kube-controller-manager gives to each Node (--node-cidr-mask-size).
const podRangeBits = 24

// podRanges are the ranges that machines have been found to have, by range. They are Status.PodCIDR of the machines
// before it can be read there: of two machines at the same moment one is second.
type podRanges struct {
	mu sync.Mutex
	of map[netip.Prefix]string
}

func newPodRanges() *podRanges { return &podRanges{of: map[netip.Prefix]string{}} }

// take gives a range to a machine, unless another has it; it returns the machine that has the range.
func (p *podRanges) take(to netip.Prefix, machine string) (owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if owner, ok := p.of[to]; ok {
		return owner
	}
	p.of[to] = machine
	return machine
}

// free takes a range from a machine.
func (p *podRanges) free(to netip.Prefix, machine string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[to] == machine {
		delete(p.of, to)
	}
}

// podRange is the range of addresses of the Node's pods. A node may write any range into its own Node while that has
// none (NodeRestriction does not look at it), and would be sent what is meant for another machine or its pods: the
// credentials of the other's role, too. So it must be a range that the cluster gives to nodes, and no other machine's.
func (r *machines) podRange(ctx context.Context, m *v1alpha1.Machine, node *corev1.Node) (netip.Prefix, error) {
	refuse := func(why string) (netip.Prefix, error) {
		return netip.Prefix{}, fmt.Errorf("the Node %s claims the pod range %.64q, but %s: nothing is routed to it; if no administrator wrote that, the machine may be compromised: delete it",
			node.Name, node.Spec.PodCIDR, why)
	}
	to, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil || to.Bits() != podRangeBits || to != to.Masked() || !r.Network.PodCIDR.Contains(to.Addr()) {
		return refuse(fmt.Sprintf("nodes have a /%d of %s", podRangeBits, r.Network.PodCIDR))
	}
	list := &v1alpha1.MachineList{}
	if err := r.management.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return netip.Prefix{}, fmt.Errorf("listing Machines for their pod ranges: %w", err)
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.Name != m.Name && other.Spec.ClusterName == m.Spec.ClusterName && other.Spec.Provider == m.Spec.Provider && other.Status.PodCIDR == to.String() {
			return refuse("the range is that of machine " + other.Name)
		}
	}
	if owner := r.ranges.take(to, m.Name); owner != m.Name {
		return refuse("the range is that of machine " + owner)
	}
	return to, nil
}
