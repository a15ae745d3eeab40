// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second // a plane that comes back must not wait longer for its machines
)

// parts is what the reconcilers share.
type parts struct {
	Config
	management     client.Client
	managementLive client.Reader // not from the cache
	cluster        client.Client
	clusterLive    client.Reader // not from the cache
	steps          *joinlog.Tracker
	recorder       events.EventRecorder
	nodeEvents     events.EventRecorder // of the cluster that machines join
	began          time.Time            // when this service did
}

// since is when waiting for something began that was to happen since a moment: while no service ran, nothing could.
func (p parts) since(moment time.Time) time.Time {
	if moment.Before(p.began) {
		return p.began
	}
	return moment
}

// hostRoot reports whether a cluster may have machines whose root is root on the host.
func (p parts) hostRoot(cluster string) (bool, error) {
	if p.HostRoot == nil {
		return false, nil
	}
	clusters, err := p.HostRoot()
	return err == nil && clusters.Allow(cluster), err
}

// Add adds the controllers to a manager of the management plane, with what they need: the cluster's cache, the watch of
// the providers' instances, and the follower of the audit log. The manager's scheme must know the kinds of Scheme.
func Add(mgr manager.Manager, config Config) error {
	config, err := config.withDefaults()
	if err != nil {
		return err
	}
	p := parts{
		Config:         config,
		management:     mgr.GetClient(),
		managementLive: mgr.GetAPIReader(),
		cluster:        config.Cluster.GetClient(),
		clusterLive:    config.Cluster.GetAPIReader(),
		steps:          joinlog.NewTracker(),
		recorder:       mgr.GetEventRecorder("muster"),
		nodeEvents:     config.Cluster.GetEventRecorder("muster"),
		began:          config.Now(),
	}
	nudges := make(chan event.TypedGenericEvent[string])
	watch := newWatcher(p, nudges)
	remembered := newMemory()
	asking := &rechecker{management: p.management, cluster: config.ClusterName, changed: config.Admitted, memory: remembered, nudges: nudges, log: config.Log}
	hearing := &listener{refused: config.Refused, memory: remembered, nudges: nudges, now: config.Now}
	runnables := []manager.Runnable{config.Cluster, watch, asking, hearing}
	for _, path := range config.AuditLogs {
		follower, err := joinlog.NewFollower(joinlog.FollowerConfig{Path: path, Tracker: p.steps, Changed: watch.later, Log: config.Log})
		if err != nil {
			return err
		}
		runnables = append(runnables, follower)
	}
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding %T to the manager of node groups: %w", runnable, err)
		}
	}
	if err := addMachines(mgr, p, remembered, nudges); err != nil {
		return fmt.Errorf("adding the machine controller: %w", err)
	}
	if err := addStrangers(mgr, p); err != nil {
		return fmt.Errorf("adding the controller of Nodes that are not machines: %w", err)
	}
	if p.Network.PodsInSubnets {
		if err := addNodeRanges(mgr, p); err != nil {
			return fmt.Errorf("adding the controller of Nodes' pod ranges: %w", err)
		}
	}
	if err := addGroups(mgr, p); err != nil {
		return fmt.Errorf("adding the node group controller: %w", err)
	}
	if err := addClusters(mgr, p); err != nil {
		return fmt.Errorf("adding the cluster controller: %w", err)
	}
	return nil
}

func options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

func addMachines(mgr manager.Manager, p parts, remembered *memory, nudges <-chan event.TypedGenericEvent[string]) error {
	nodes := source.Kind(p.Cluster.GetCache(), &corev1.Node{}, machinesOfNodes(p.Now),
		predicate.TypedFuncs[*corev1.Node]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool { return nodeChanged(e.ObjectOld, e.ObjectNew) }},
	)
	instances := source.Channel(nudges, handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, id string) []reconcile.Request {
		return []reconcile.Request{request(id)}
	}))
	r := &machines{parts: p, relaunch: newPacer(), memory: remembered, ranges: newPodRanges()}
	return builder.ControllerManagedBy(mgr).
		Named("machine").
		For(&v1alpha1.Machine{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})). // its status is written here only
		WatchesRawSource(nodes).
		WatchesRawSource(instances).
		Watches(&v1alpha1.NodeGroup{}, handler.EnqueueRequestsFromMapFunc(r.ofGroup), builder.WithPredicates(nodesChange())).
		WithOptions(options(p.Workers)).
		Complete(inTurn{r})
}

func addGroups(mgr manager.Manager, p parts) error {
	groups := &groups{parts: p}
	return builder.ControllerManagedBy(mgr).
		Named("nodegroup").
		For(&v1alpha1.NodeGroup{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Machine{}, p.groupOfMachine(),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
				was, isMachine := e.ObjectOld.(*v1alpha1.Machine)
				is, isMachineToo := e.ObjectNew.(*v1alpha1.Machine)
				return !isMachine || !isMachineToo || observe(was) != observe(is) || troubled(was) != troubled(is) || (refusalOf(was) == nil) != (refusalOf(is) == nil) ||
					!equality.Semantic.DeepEqual(was.Status.Node, is.Status.Node)
			}})).
		WatchesRawSource(p.unhealthyNodes()).
		Watches(&v1alpha1.Cluster{},
			handler.EnqueueRequestsFromMapFunc(groups.ofCluster),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		WithOptions(options(2)).
		Complete(groups)
}

func addClusters(mgr manager.Manager, p parts) error {
	return builder.ControllerManagedBy(mgr).
		Named("cluster").
		For(&v1alpha1.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(options(1)).
		Complete(&clusters{parts: p})
}

// namespace is that of the cluster.
func (p parts) namespace() string { return v1alpha1.ClusterSlug(p.ClusterName) }

// ours reports whether a machine is of the cluster. The controllers leave the machines of others alone.
func (p parts) ours(m *v1alpha1.Machine) bool { return m.Spec.ClusterName == p.ClusterName }

// request is for an object without a namespace.
func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
