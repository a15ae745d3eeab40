// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/certificates/policy"
)

// NewNodeStatus makes the source "nodeStatus": the status of Node objects. It is weak, and its name says so: the
// addresses are what the node says about itself (kubelets may write the status of their own Node), so with this source
// alone a node gets a certificate for any name or address that is not reserved and that no other Node claims. It helps
// where addresses are set by a cloud provider, and nowhere to decide which machines may join: a node that has not
// registered is not in it. It knows names, not identities: a machine that took the place of another under the same name
// has the same ID, which is the node's name. c.Objects is what NodeStatuses returns.
func NewNodeStatus(c WatchConfig) (*Watch, error) {
	if c.Name == "" {
		c.Name = "nodeStatus"
	}
	return newWatch(c, objects{
		example: &corev1.Node{},
		read: func(o any) (policy.Machine, bool) {
			n, ok := o.(*corev1.Node)
			if !ok {
				return policy.Machine{}, false
			}
			m := policy.Machine{ID: n.Name, NodeName: n.Name, Deleting: n.DeletionTimestamp != nil}
			for _, a := range n.Status.Addresses {
				assigned(&m, a.Type, a.Address)
			}
			return m, true
		},
		trim: trimNode,
	})
}

// NodeStatuses lists and watches the Nodes of a cluster.
func NodeStatuses(client kubernetes.Interface) cache.ListerWatcher {
	nodes := client.CoreV1().Nodes()
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return nodes.Watch(ctx, o)
		},
	}, client)
}

func trimNode(o any) {
	if n, ok := o.(*corev1.Node); ok {
		n.ManagedFields, n.Labels, n.Annotations, n.OwnerReferences, n.Finalizers = nil, nil, nil, nil, nil
		n.Spec = corev1.NodeSpec{}
		n.Status = corev1.NodeStatus{Addresses: n.Status.Addresses}
	}
}
