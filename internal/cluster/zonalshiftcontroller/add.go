// SPDX-License-Identifier: Apache-2.0

package zonalshiftcontroller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/zonalshift"
)

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// Config is what the controller needs.
type Config struct {
	// Namespace of the cluster in the management plane, which is its name there, too.
	Namespace string
	// API reads and writes the cluster's objects, and has no cache. NewAPI makes one.
	API client.Client
	// BetaPolicies reports whether MutatingAdmissionPolicies are a beta of the cluster's minor.
	BetaPolicies bool
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// NewAPI makes a client of a cluster for Config, without asking the cluster for its kinds.
func NewAPI(connection *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	for _, beta := range []bool{true, false} {
		version := schema.GroupVersion{Group: zonalshift.PolicyGroup, Version: zonalshift.PolicyVersion(beta)}
		mapper.Add(version.WithKind(zonalshift.PolicyKind), meta.RESTScopeRoot)
		mapper.Add(version.WithKind(zonalshift.BindingKind), meta.RESTScopeRoot)
	}
	api, err := client.New(connection, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client of the cluster for zonal shifts: %w", err)
	}
	return api, nil
}

// Add adds the controller to a manager of the management plane. The cluster's cache has its Nodes, and somebody else
// starts it.
func Add(mgr manager.Manager, plane cluster.Cluster, config Config) error {
	if plane == nil || config.API == nil || config.Namespace == "" {
		return errors.New("the controller of zonal shifts needs a cluster, its namespace, and a client of it")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	r := &reconciler{Config: config, management: mgr.GetClient(), nodes: plane.GetClient(), recorder: mgr.GetEventRecorder("muster")}
	own := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: config.Namespace, Name: config.Namespace}}
	look := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{own} }
	err := builder.ControllerManagedBy(mgr).
		Named("zonalshift").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Watches(&v1alpha1.ZonalShift{}, handler.EnqueueRequestsFromMapFunc(look), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(look), builder.WithPredicates(predicate.GenerationChangedPredicate{})). // also at the start
		WatchesRawSource(source.Kind(plane.GetCache(), &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, n *corev1.Node) []reconcile.Request { return look(ctx, n) }),
			predicate.TypedFuncs[*corev1.Node]{
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool { return markChanged(e.ObjectOld, e.ObjectNew) },
				DeleteFunc: func(event.TypedDeleteEvent[*corev1.Node]) bool { return false },
			})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of zonal shifts: %w", err)
	}
	return nil
}

// markChanged reports whether a change of a Node is about its zone or about the mark that a shift leaves on it.
func markChanged(was, is *corev1.Node) bool {
	return was.Labels[corev1.LabelTopologyZone] != is.Labels[corev1.LabelTopologyZone] ||
		was.Annotations[v1alpha1.AnnotationZonalShift] != is.Annotations[v1alpha1.AnnotationZonalShift]
}
