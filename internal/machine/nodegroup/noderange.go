// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// rangeSoon is how soon it is looked again whether a machine's range is known.
	rangeSoon = time.Second
	// rangeLater is how soon it is looked again whether a range is left.
	rangeLater = 30 * time.Second
)

// nodeRanges writes into each Node its range of pods' addresses, once, in a cluster whose machines' pods have addresses
// of their subnets: that of the machine, or, of a Node that is no machine of the VPC's, a /24 of the cluster's range.
// It does what kube-controller-manager does in other clusters.
type nodeRanges struct {
	parts
	// given are ranges that were written a moment ago, and by whose Node: what is read from memory may not say so yet.
	given map[netip.Prefix]types.UID
}

func addNodeRanges(mgr manager.Manager, p parts) error {
	without := func(node *corev1.Node) bool { return node.Spec.PodCIDR == "" }
	nodes := source.Kind(p.Cluster.GetCache(), &corev1.Node{},
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, node *corev1.Node) []reconcile.Request {
			return []reconcile.Request{request(node.Name)}
		}), predicate.NewTypedPredicateFuncs(without))
	return builder.ControllerManagedBy(mgr).
		Named("noderange").
		WatchesRawSource(nodes).
		WithOptions(options(1)). // two could choose one range
		Complete(&nodeRanges{parts: p, given: map[netip.Prefix]types.UID{}})
}

// Reconcile gives one Node its range, if it has none.
func (r *nodeRanges) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := r.cluster.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if node.Spec.PodCIDR != "" || !node.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	m, err := r.machineOf(ctx, node)
	if err != nil {
		return reconcile.Result{}, err
	}
	var own netip.Prefix
	if m != nil {
		if own, err = netip.ParsePrefix(m.Status.PodCIDR); err != nil { // not told yet
			return reconcile.Result{RequeueAfter: rangeSoon}, nil //nolint:nilerr // see above
		}
	} else {
		var nodes corev1.NodeList
		if err := r.cluster.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return reconcile.Result{}, fmt.Errorf("listing Nodes for their pod ranges: %w", err)
		}
		var left bool
		if own, left = r.choose(nodes.Items); !left {
			r.Log.WarnContext(ctx, "no range of pods' addresses is left for a node that is no machine of the VPC's", "node", node.Name, "range", r.Network.PodCIDR.String())
			return reconcile.Result{RequeueAfter: rangeLater}, nil
		}
	}
	patch := rangePatch(node)
	node.Spec.PodCIDR, node.Spec.PodCIDRs = own.String(), []string{own.String()}
	if err := r.cluster.Patch(ctx, node, patch); client.IgnoreNotFound(err) != nil {
		return again(fmt.Errorf("writing the pod range of Node %s: %w", node.Name, err))
	}
	r.given[own] = node.UID
	return reconcile.Result{}, nil
}

// rangePatch is about a Node without a range as it was before. The patch names the Node by its UID, not by its version:
// the kubelet and others write into a new Node at the same time. The API server refuses it for another Node of that
// name, and for one that has a range by now, which nobody can change.
func rangePatch(node *corev1.Node) client.Patch {
	before := node.DeepCopy()
	before.UID = ""
	return client.MergeFrom(before)
}

// machineOf is the machine of a Node whose pods have a range of its subnet, or nil. Nodes are known by the names that
// the provider has given to machines; until the name is told, by the machine that the Node says it is.
func (r *nodeRanges) machineOf(ctx context.Context, node *corev1.Node) (*v1alpha1.Machine, error) {
	m, err := r.machineNamed(ctx, r.management, node)
	if err != nil {
		return nil, err
	}
	if m != nil && r.ours(m) { // no other machine of the cluster has its name
		return r.ifRouted(m), nil
	}
	var all v1alpha1.MachineList
	if err := r.management.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Machines for the pod range of a Node: %w", err)
	}
	said := machineOf(node)
	for i := range all.Items {
		m := r.ifRouted(&all.Items[i])
		if m != nil && r.ours(m) && (m.Status.NodeName == node.Name || m.Status.NodeName == "" && m.Name == said) {
			return m, nil
		}
	}
	return nil, nil //nolint:nilnil // a missing machine is not an error
}

// ifRouted is a machine if the addresses of its pods are routed to it, else nil.
func (r *nodeRanges) ifRouted(m *v1alpha1.Machine) *v1alpha1.Machine {
	if _, routed := r.Routes[m.Spec.Provider]; !routed {
		return nil
	}
	return m
}

// choose is the first range that no Node has.
func (r *nodeRanges) choose(nodes []corev1.Node) (netip.Prefix, bool) {
	used, without := make(map[netip.Prefix]bool, len(nodes)), map[types.UID]bool{}
	for i := range nodes {
		if nodes[i].Spec.PodCIDR == "" {
			without[nodes[i].UID] = true
		} else if has, err := netip.ParsePrefix(nodes[i].Spec.PodCIDR); err == nil {
			used[netip.PrefixFrom(has.Addr(), podRangeBits).Masked()] = true
		}
	}
	for given, of := range r.given {
		if without[of] {
			used[given] = true
		} else {
			delete(r.given, given)
		}
	}
	address := r.Network.PodCIDR.Masked().Addr().As4()
	for r.Network.PodCIDR.Contains(netip.AddrFrom4(address)) {
		if candidate := netip.PrefixFrom(netip.AddrFrom4(address), podRangeBits); !used[candidate] {
			return candidate, true
		}
		if address[2]++; address[2] == 0 {
			if address[1]++; address[1] == 0 {
				address[0]++
			}
		}
	}
	return netip.Prefix{}, false
}
