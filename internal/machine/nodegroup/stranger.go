// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/bootstraptoken"
)

// strangers deletes Nodes that pass for machines of the service and are not machines of this cluster, each time that
// one appears: such as one that a machine of another cluster made, by a hole that nobody knows of. A Node writes its
// provider id itself, and its name is the one that the API server took it for, so the name is compared with what the
// service gave its machines. Nodes of other names are not its business: hosts that joined, people's own, and those that
// tests make.
type strangers struct{ parts }

// The forms of names that EC2 gives instances (EC2's user guide, "EC2 instance hostnames and domains"), and of their
// ids.
var (
	byAddress  = regexp.MustCompile(`^(fargate-)?ip(-[0-9]{1,3}){4}\.(ec2\.internal|[a-z0-9-]+\.compute\.internal)$`)
	byInstance = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})(\.(ec2\.internal|[a-z0-9-]+\.compute\.internal))?$`)
)

func addStrangers(mgr manager.Manager, p parts) error {
	nodes := source.Kind(p.Cluster.GetCache(), &corev1.Node{},
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, node *corev1.Node) []reconcile.Request {
			return []reconcile.Request{request(node.Name)}
		}), predicate.TypedFuncs[*corev1.Node]{
			CreateFunc: func(e event.TypedCreateEvent[*corev1.Node]) bool { return passesForMachine(e.Object) },
			UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
				return passesForMachine(e.ObjectNew) && (e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Spec.ProviderID != e.ObjectNew.Spec.ProviderID)
			},
			DeleteFunc: func(event.TypedDeleteEvent[*corev1.Node]) bool { return false },
		})
	return builder.ControllerManagedBy(mgr).
		Named("strangenode").
		WatchesRawSource(nodes).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(p.nodeLeftBehind), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		WithOptions(options(1)).
		Complete(&strangers{parts: p})
}

// nodeLeftBehind is the Node of a machine that is gone: whoever has the machine's certificate may have made it once
// more at the last moment, when the machine counted as one of the cluster's yet.
//
// A machine whose record was damaged may have a Node, and no name that anybody knows: Nodes that say that they are the
// machine's are looked at.
func (p parts) nodeLeftBehind(ctx context.Context, object client.Object) (left []reconcile.Request) {
	m, ok := object.(*v1alpha1.Machine)
	if !ok || !p.ours(m) {
		return nil
	}
	if m.Status.NodeName != "" {
		return []reconcile.Request{request(m.Status.NodeName)}
	}
	nodes := &corev1.NodeList{}
	if err := p.cluster.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil // they are looked at when the service starts again
	}
	for i := range nodes.Items {
		if machineOf(&nodes.Items[i]) == m.Name {
			left = append(left, request(nodes.Items[i].Name))
		}
	}
	return left
}

// passesForMachine reports whether a Node has a name or a provider id of the form that the service gives its machines.
func passesForMachine(node *corev1.Node) bool {
	return namedAsMachine(node.Name) || byInstance.MatchString(machineOf(node))
}

func namedAsMachine(name string) bool {
	return byAddress.MatchString(name) || byInstance.MatchString(name)
}

// Reconcile looks at one Node. If a cache has no Machine for the Node, the API server is asked before the Node is
// deleted.
func (r *strangers) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := r.cluster.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !passesForMachine(node) || !node.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	for _, known := range []func(context.Context, *corev1.Node) (bool, error){
		func(ctx context.Context, node *corev1.Node) (bool, error) {
			return r.isMachine(ctx, r.management, node)
		},
		func(ctx context.Context, node *corev1.Node) (bool, error) {
			return r.isMachine(ctx, r.managementLive, node)
		},
		r.isHost,
	} {
		if is, err := known(ctx, node); is || err != nil {
			return again(err)
		}
	}
	return again(r.banish(ctx, node))
}

// isMachine reports whether a Node is a machine of this cluster, or an instance of no cluster, which access entries
// decide about.
func (r *strangers) isMachine(ctx context.Context, reader client.Reader, node *corev1.Node) (bool, error) {
	if m, err := r.machineNamed(ctx, reader, node); m != nil || err != nil {
		return err == nil, err
	}
	var all v1alpha1.MachineList
	if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing Machines to find that of Node %s: %w", node.Name, err)
	}
	said, named := machineOf(node), namedAsMachine(node.Name)
	for i := range all.Items {
		m := &all.Items[i]
		if m.Spec.ClusterName != "" && !r.ours(m) {
			continue
		}
		if m.Status.NodeName == node.Name || m.Name == strings.SplitN(node.Name, ".", 2)[0] || !named && m.Name == said {
			return true, nil
		}
		if m.Status.NodeName != "" || !named {
			continue
		}
		if is, err := r.launchedAs(ctx, m, node.Name); is || err != nil { // its name is told in a moment
			return is, err
		}
	}
	return false, nil
}

// machineNamed is the machine that a Node says it is, if that is one of this cluster or of none and has the Node's name; nil
// otherwise. All machines need not be looked at then.
func (p parts) machineNamed(ctx context.Context, reader client.Reader, node *corev1.Node) (*v1alpha1.Machine, error) {
	said, m := machineOf(node), &v1alpha1.Machine{}
	if machine.ValidateID(said) != nil {
		return nil, nil //nolint:nilerr,nilnil // no machine has such an id
	}
	switch err := reader.Get(ctx, client.ObjectKey{Name: said}, m); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // a missing machine is not an error
	case err != nil:
		return nil, fmt.Errorf("reading the Machine that Node %s says it is: %w", node.Name, err)
	}
	if m.Spec.ClusterName != "" && !p.ours(m) || m.Status.NodeName != node.Name {
		return nil, nil //nolint:nilnil // it says so
	}
	return m, nil
}

// launchedAs reports whether a machine whose status does not say so yet was launched with a name.
func (r *strangers) launchedAs(ctx context.Context, m *v1alpha1.Machine, name string) (bool, error) {
	provider, ok := r.Providers[m.Spec.Provider]
	if !ok {
		return false, nil
	}
	instance, err := provider.Get(ctx, m.Name)
	if errors.Is(err, machine.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the provider for the instance of machine %s: %w", m.Name, err)
	}
	return instance.PrivateDNSName == name, nil
}

// isHost reports whether a Node is a host that an operator registered, such as an instance of AWS's.
func (r *strangers) isHost(ctx context.Context, node *corev1.Node) (bool, error) {
	hosts, err := bootstraptoken.Hosts(ctx, r.clusterLive)
	if err != nil {
		return false, fmt.Errorf("reading the registered hosts to find Node %s: %w", node.Name, err)
	}
	return slices.ContainsFunc(hosts, func(m policy.Machine) bool { return m.NodeName == node.Name }), nil
}

// banish deletes a Node and says so in an Event of its cluster.
func (r *strangers) banish(ctx context.Context, node *corev1.Node) error {
	switch err := r.cluster.Delete(ctx, node, client.Preconditions{UID: &node.UID}); {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // what has its name by now is looked at by itself
		return nil
	case err != nil:
		return fmt.Errorf("deleting Node %s: %w", node.Name, err)
	}
	r.Log.WarnContext(ctx, "deleted a Node that passes for a machine of this cluster and is not one", "node", node.Name, "provider_id", node.Spec.ProviderID)
	r.nodeEvents.Eventf(node, nil, corev1.EventTypeWarning, "NotAMachine", "Delete",
		"deleted the Node: its name, or its provider id %.100q, has the form of a machine's, and cluster %s has no such machine; if it is a host of yours, register it: muster token create --node-name %s --address ADDRESS",
		node.Spec.ProviderID, r.ClusterName, node.Name)
	return nil
}
