// SPDX-License-Identifier: Apache-2.0

package loadbalancercontroller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/internal/network/balancer"
	"muster.dev/muster/internal/network/balancerplan"
	"muster.dev/muster/internal/network/loadbalancer"
)

// finalizer is the one by which every cloud's controller keeps a Service until its balancer is gone (KEP-980).
const finalizer = "service.kubernetes.io/load-balancer-cleanup"

const (
	// openingAgain is the time between two looks at a balancer whose ports are not open yet, and servedAgain at one
	// that serves.
	openingAgain = 200 * time.Millisecond
	servedAgain  = 10 * time.Second
	// failedAgain is the time until another look at ports that could not be opened.
	failedAgain = 5 * time.Second
	// patience is how long the pods of a new Service may take before somebody is told that there are none.
	patience = 30 * time.Second
	// soon is the time until a look with a newer cache.
	soon = 50 * time.Millisecond
)

// Balancers keeps the load balancers of one cluster.
type Balancers interface {
	// List lists those of the cluster.
	List() ([]loadbalancer.Balancer, error)
	// Ensure has the balancer of a Service serve what the spec says. A new balancer gets addresses and keeps them. The
	// errors [loadbalancer.ErrNoAddress] and [loadbalancer.ErrRangeFull] mean that no address is free in the VPC or on
	// the host; [loadbalancer.ErrTooMany] means that the cluster has as many balancers as it may have.
	Ensure(of loadbalancer.Service, spec loadbalancer.Spec) (loadbalancer.Balancer, error)
	// Release removes those that match, and frees their addresses.
	Release(ctx context.Context, match func(loadbalancer.Balancer) bool) error
	// Status asks the process that serves them. It is an error while that cannot be asked.
	Status(ctx context.Context) (balancer.Status, error)
}

// reconciler reconciles Services.
type reconciler struct {
	cluster   client.Client // reads from the cache
	balancers Balancers
	events    *events
	now       func() time.Time
}

// Reconcile implements [reconcile.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	service := &corev1.Service{}
	err := r.cluster.Get(ctx, request.NamespacedName, service)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading Service %s: %w", request, err)
	}
	// Balancers of an earlier Service of this name, or of this Service if it is gone.
	if err := r.balancers.Release(ctx, func(b loadbalancer.Balancer) bool {
		return b.Namespace == request.Namespace && b.Service == request.Name && b.UID != string(service.UID)
	}); err != nil || service.Name == "" {
		return reconcile.Result{}, err
	}
	endpoints, nodes, err := r.gather(ctx, service)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := balancerplan.Decide(service, endpoints, nodes)
	if decision.Verdict == balancerplan.Release {
		return r.release(ctx, service)
	}
	if controllerutil.AddFinalizer(service, finalizer) { // before there is anything to clean up
		if err := r.cluster.Update(ctx, service); err != nil {
			return settle(fmt.Errorf("adding the finalizer of Service %s: %w", request, err))
		}
	}
	var found *outcome
	if decision.Verdict == balancerplan.Refuse {
		found, err = r.refuse(service)
	} else {
		found, err = r.serve(ctx, service, decision.Spec)
	}
	if err != nil {
		return settle(err)
	}
	if err := r.publish(ctx, service, found); err != nil {
		return settle(err)
	}
	for _, notice := range append(decision.Notices, found.notices...) {
		if notice.Reason == balancerplan.ReasonHostExcluded && !found.loopback {
			continue // from elsewhere the host's programs do not connect from 127.0.0.1
		}
		if notice.Reason == balancerplan.ReasonNoReadyTarget && r.now().Sub(service.CreationTimestamp.Time) < patience {
			continue // its pods are on their way
		}
		if err := r.events.say(ctx, service, notice); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: found.again}, nil
}

// gather reads what a decision is made from.
func (r *reconciler) gather(ctx context.Context, service *corev1.Service) ([]discoveryv1.EndpointSlice, []corev1.Node, error) {
	if !balancerplan.Ours(service) {
		return nil, nil, nil
	}
	slices, nodes := &discoveryv1.EndpointSliceList{}, &corev1.NodeList{}
	if err := r.cluster.List(ctx, slices, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
		return nil, nil, fmt.Errorf("listing EndpointSlices of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	if err := r.cluster.List(ctx, nodes); err != nil {
		return nil, nil, fmt.Errorf("listing Nodes: %w", err)
	}
	return slices.Items, nodes.Items, nil
}

// release removes the balancer of a Service that has none any more, and lets the Service go.
func (r *reconciler) release(ctx context.Context, service *corev1.Service) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(service, finalizer) || foreign(service) {
		return reconcile.Result{}, nil
	}
	if err := r.balancers.Release(ctx, func(b loadbalancer.Balancer) bool { return b.UID == string(service.UID) }); err != nil {
		return reconcile.Result{}, err
	}
	if service.DeletionTimestamp.IsZero() {
		if err := r.publish(ctx, service, &outcome{}); err != nil {
			return settle(err)
		}
	}
	if controllerutil.RemoveFinalizer(service, finalizer) {
		if err := r.cluster.Update(ctx, service); client.IgnoreNotFound(err) != nil {
			return settle(fmt.Errorf("removing the finalizer of Service %s/%s: %w", service.Namespace, service.Name, err))
		}
	}
	return reconcile.Result{}, nil
}

// foreign reports whether a Service is another controller's: of type LoadBalancer, and of a class that is not served
// here. A class cannot be changed, so this one never was.
func foreign(service *corev1.Service) bool {
	return service.Spec.Type == corev1.ServiceTypeLoadBalancer && !balancerplan.Ours(service)
}

// settle tries again soon after a conflict, which is not an error.
func settle(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{}, err
}
