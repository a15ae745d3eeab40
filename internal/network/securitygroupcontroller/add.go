// SPDX-License-Identifier: Apache-2.0

package securitygroupcontroller

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/network/vpc"
)

// Add adds the controller to a manager of the management plane.
func Add(mgr manager.Manager, networks Networks) error {
	r := &reconciler{networks: networks, api: mgr.GetClient()}
	err := builder.ControllerManagedBy(mgr).Named("securitygroup").For(&v1alpha1.VPC{}).
		Watches(&v1alpha1.SecurityGroup{}, handler.EnqueueRequestsFromMapFunc(ofGroup), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine), builder.WithPredicates(predicate.NewPredicateFuncs(hasInterface), predicate.Funcs{UpdateFunc: machineChanged})).
		Watches(&v1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster), builder.WithPredicates(predicate.Funcs{UpdateFunc: clusterChanged})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of security groups: %w", err)
	}
	return nil
}

func ofGroup(_ context.Context, object client.Object) []reconcile.Request {
	group, ok := object.(*v1alpha1.SecurityGroup)
	if !ok {
		return nil
	}
	return requests(group.Spec.VPCID)
}

func ofCluster(_ context.Context, object client.Object) []reconcile.Request {
	cluster, ok := object.(*v1alpha1.Cluster)
	if !ok || cluster.Status.VPCID == "" {
		return nil
	}
	return requests(cluster.Status.VPCID)
}

// ofMachine finds the VPC of a machine by its subnet, and names all VPCs if that is gone.
func (r *reconciler) ofMachine(ctx context.Context, object client.Object) []reconcile.Request {
	m, ok := object.(*v1alpha1.Machine)
	if !ok {
		return nil
	}
	var subnet v1alpha1.Subnet
	if m.Spec.SubnetID != "" && r.api.Get(ctx, types.NamespacedName{Name: string(m.Spec.SubnetID)}, &subnet) == nil {
		return requests(subnet.Spec.VPCID)
	}
	var all v1alpha1.VPCList
	if err := r.api.List(ctx, &all); err != nil {
		return nil // a list from the cache
	}
	var ids []string
	for _, one := range all.Items {
		ids = append(ids, one.Name)
	}
	return requests(ids...)
}

func requests(ids ...string) []reconcile.Request {
	all := make([]reconcile.Request, 0, len(ids))
	for _, id := range ids {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Name: id}})
	}
	return all
}

// hasInterface reports whether a machine has an interface in its VPC: simulated ones send nothing. Their groups are
// looked at with all others when one of these is deleted.
func hasInterface(object client.Object) bool {
	m, ok := object.(*v1alpha1.Machine)
	return !ok || m.Spec.Provider.Can(v1alpha1.JoinNetwork)
}

// machineChanged reports whether a machine's groups, its address or its life changed.
func machineChanged(e event.UpdateEvent) bool {
	was, isMachine := e.ObjectOld.(*v1alpha1.Machine)
	is, isMachineToo := e.ObjectNew.(*v1alpha1.Machine)
	return !isMachine || !isMachineToo || was.Generation != is.Generation || address(was) != address(is)
}

func clusterChanged(e event.UpdateEvent) bool {
	was, isCluster := e.ObjectOld.(*v1alpha1.Cluster)
	is, isClusterToo := e.ObjectNew.(*v1alpha1.Cluster)
	return !isCluster || !isClusterToo || was.Status.VPCID != is.Status.VPCID || was.Status.ClusterSecurityGroupID != is.Status.ClusterSecurityGroupID ||
		!slices.Equal(was.Spec.SecurityGroupIDs, is.Spec.SecurityGroupIDs)
}

// OnDisk has the rules of networks that are below the directory of all VPCs.
type OnDisk struct {
	// Root is that directory.
	Root string
}

// Enforce implements [Networks].
func (o OnDisk) Enforce(id string, groups []securitygroup.Group, interfaces []vpc.Interface, endpoints map[string][]string) error {
	if err := vpc.ValidateID(id); err != nil {
		return err
	}
	network, err := vpc.Open(o.Root, id)
	if err != nil {
		return err
	}
	if err := network.SetSecurity(groups, interfaces); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(o.Root, id), err)
	}
	return network.SetEndpointGroups(endpoints)
}
