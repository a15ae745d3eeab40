// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Add adds the part to a manager of the cluster that the entries are about. Several replicas need the manager's leader
// election.
func Add(mgr manager.Manager, config Config) error {
	r, err := New(mgr.GetClient(), config)
	if err != nil {
		return err
	}
	err = builder.ControllerManagedBy(mgr).
		Named("accesspolicy").
		For(&accessv1alpha1.AccessEntry{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace), builder.WithPredicates(comesOrGoes())).
		Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(ofBinding)). // also those whose entry went while nobody looked
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(ofBinding)).
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of access policies: %w", err)
	}
	return nil
}

// comesOrGoes passes namespaces that are made or deleted: nothing else about one matters.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// ofNamespace are the entries that name a namespace.
func (r *Reconciler) ofNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	list := &accessv1alpha1.AccessEntryList{}
	if err := r.client.List(ctx, list); err != nil { // the cache, which fails only while it ends
		r.log.ErrorContext(ctx, "listing access entries", slog.Any("error", err))
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if concerns(&list.Items[i], namespace.GetName()) {
			out = append(out, request(list.Items[i].Name))
		}
	}
	return out
}

// ofBinding is the entry of a binding of this part.
func ofBinding(_ context.Context, binding client.Object) []reconcile.Request {
	name := binding.GetAnnotations()[AnnotationEntry]
	if name == "" || !ours(binding, name) {
		return nil
	}
	return []reconcile.Request{request(name)}
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
