// SPDX-License-Identifier: Apache-2.0

package loadbalancercontroller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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
	"muster.dev/muster/internal/network/balancerplan"
)

// workers is how many Services are handled at once.
const workers = 4

// ClusterOptions has a cluster know the kinds that this package reads and writes, beside those that it knows. Its cache
// holds Services and EndpointSlices then, and Nodes as its other readers have them: their labels, the mark of a zonal
// shift, addresses and taints are looked at. The cluster need not be up when it is made.
func ClusterOptions(options *cluster.Options) {
	own := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		corev1.SchemeGroupVersion.WithKind("Service"):            meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Event"):              meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Node"):               meta.RESTScopeRoot,
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"): meta.RESTScopeNamespace,
	} {
		own.Add(kind, scope)
		own.Add(kind.GroupVersion().WithKind(kind.Kind+"List"), scope) // the cache asks for lists by this name
	}
	before := options.MapperProvider
	options.MapperProvider = func(config *rest.Config, c *http.Client) (meta.RESTMapper, error) {
		if before == nil {
			return own, nil
		}
		others, err := before(config, c)
		return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{others, own}}, err
	}
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
}

// Add adds the controller to a manager. The cluster is made with ClusterOptions, and somebody else starts it: thousands of
// Nodes are read once for all controllers.
func Add(mgr manager.Manager, plane cluster.Cluster, balancers Balancers) error {
	if plane == nil || balancers == nil {
		return errors.New("the controller of load balancers needs a cluster, and something that keeps load balancers")
	}
	all, api := plane.GetCache(), plane.GetClient()
	r := &reconciler{cluster: api, balancers: balancers, events: newEvents(api, time.Now), now: time.Now}
	err := builder.ControllerManagedBy(mgr).
		Named("loadbalancers").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		WatchesRawSource(source.Kind(all, &corev1.Service{}, &handler.TypedEnqueueRequestForObject[*corev1.Service]{})).
		WatchesRawSource(source.Kind(all, &discoveryv1.EndpointSlice{}, handler.TypedEnqueueRequestsFromMapFunc(serviceOf))).
		WatchesRawSource(source.Kind(all, &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(r.everyService), predicate.TypedFuncs[*corev1.Node]{
			UpdateFunc: nodeChanged,
		})).
		WatchesRawSource(source.Func(r.leftOver)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of load balancers: %w", err)
	}
	return nil
}

// serviceOf is the Service that an EndpointSlice is of.
func serviceOf(_ context.Context, slice *discoveryv1.EndpointSlice) []reconcile.Request {
	name := slice.Labels[discoveryv1.LabelServiceName]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: slice.Namespace, Name: name}}}
}

// everyService are the Services whose targets may be nodes.
func (r *reconciler) everyService(ctx context.Context, _ *corev1.Node) []reconcile.Request {
	list := &corev1.ServiceList{}
	if err := r.cluster.List(ctx, list); err != nil { // the cache ends: everything is looked at again after the next start
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if balancerplan.Ours(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// nodeChanged reports whether a change of a Node is one that targets depend on.
func nodeChanged(change event.TypedUpdateEvent[*corev1.Node]) bool {
	before, after := change.ObjectOld, change.ObjectNew
	_, was := before.Labels[corev1.LabelNodeExcludeBalancers]
	_, is := after.Labels[corev1.LabelNodeExcludeBalancers]
	_, wasShifted := before.Annotations[v1alpha1.AnnotationZonalShift]
	_, isShifted := after.Annotations[v1alpha1.AnnotationZonalShift]
	return was != is || wasShifted != isShifted || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
		!equality.Semantic.DeepEqual(before.Status.Addresses, after.Status.Addresses)
}

// leftOver has every balancer that there is looked at: its Service may have gone while nobody watched.
func (r *reconciler) leftOver(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	all, err := r.balancers.List()
	if err != nil {
		return err
	}
	for _, b := range all {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: b.Namespace, Name: b.Service}})
	}
	return nil
}
