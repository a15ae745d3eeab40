// SPDX-License-Identifier: Apache-2.0

package clustercontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// emptyAgain is the time between two looks at a namespace that is being deleted.
const emptyAgain = time.Second

// namespaces empties namespaces that are being deleted, and lets them go.
type namespaces struct {
	api      client.Client
	live     client.Reader // not from the cache
	contents Contents
}

// Contents is what a namespace holds besides Clusters and NodeGroups.
type Contents interface {
	// Empty deletes all of it and reports how many objects are left, such as those with finalizers.
	Empty(ctx context.Context, namespace string) (left int, err error)
}

// Reconcile implements [reconcile.Reconciler].
func (r *namespaces) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{}
	if err := r.api.Get(ctx, request.NamespacedName, namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp.IsZero() || !slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return reconcile.Result{}, nil
	}
	left, err := r.deleteClusters(ctx, namespace.Name)
	if err == nil && left == 0 {
		err = r.releaseAddons(ctx, namespace.Name)
	}
	if err == nil && left == 0 {
		left, err = r.contents.Empty(ctx, namespace.Name)
	}
	if err != nil {
		return reconcile.Result{}, errors.Join(err, r.say(ctx, namespace, err.Error()))
	}
	if left > 0 {
		return reconcile.Result{RequeueAfter: emptyAgain}, nil
	}
	namespace.Spec.Finalizers = slices.DeleteFunc(namespace.Spec.Finalizers, func(name corev1.FinalizerName) bool { return name == corev1.FinalizerKubernetes })
	if err := r.api.SubResource("finalize").Update(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return settle(fmt.Errorf("finalizing namespace %s: %w", namespace.Name, err))
	}
	return reconcile.Result{}, nil
}

// releaseAddons lets the add-ons of a namespace go whose cluster is gone: there is nothing left to remove them from.
func (r *namespaces) releaseAddons(ctx context.Context, namespace string) error {
	var addons v1alpha1.AddonList
	if err := r.live.List(ctx, &addons, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the add-ons of namespace %s: %w", namespace, err)
	}
	for i := range addons.Items {
		before := addons.Items[i].DeepCopy()
		if !controllerutil.RemoveFinalizer(&addons.Items[i], v1alpha1.FinalizerAddon) {
			continue
		}
		if err := r.api.Patch(ctx, &addons.Items[i], client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the finalizer of add-on %s of namespace %s: %w", before.Name, namespace, err)
		}
	}
	return nil
}

// deleteClusters deletes the node groups of a namespace and, once they are gone, its Clusters. It reports how many
// objects are left.
func (r *namespaces) deleteClusters(ctx context.Context, namespace string) (left int, err error) {
	var groups v1alpha1.NodeGroupList
	if err := r.live.List(ctx, &groups, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("listing the node groups of namespace %s: %w", namespace, err)
	}
	var clusters v1alpha1.ClusterList
	if err := r.live.List(ctx, &clusters, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("listing the Clusters of namespace %s: %w", namespace, err)
	}
	left = len(groups.Items) + len(clusters.Items)
	for _, cluster := range clusters.Items {
		if cluster.Spec.DeletionProtection && cluster.DeletionTimestamp.IsZero() {
			return left, fmt.Errorf("cluster %q has deletion protection enabled: namespace %s is emptied once spec.deletionProtection is false", cluster.Spec.Name, namespace)
		}
	}
	for i := range groups.Items {
		if err := r.delete(ctx, &groups.Items[i]); err != nil {
			return left, err
		}
	}
	if len(groups.Items) > 0 {
		return left, nil
	}
	for i := range clusters.Items {
		if err := r.delete(ctx, &clusters.Items[i]); err != nil {
			return left, err
		}
	}
	return left, nil
}

func (r *namespaces) delete(ctx context.Context, object client.Object) error {
	if !object.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid := object.GetUID()
	if err := r.api.Delete(ctx, object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s of namespace %s: %w", object.GetName(), object.GetNamespace(), err)
	}
	return nil
}

// say writes what keeps a namespace from going, as upstream's namespace controller does.
func (r *namespaces) say(ctx context.Context, namespace *corev1.Namespace, message string) error {
	before := namespace.DeepCopy()
	condition := corev1.NamespaceCondition{
		Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionTrue, Reason: "ContentDeletionFailed", Message: readiness.Shorten(message),
		LastTransitionTime: metav1.Now(),
	}
	i := slices.IndexFunc(namespace.Status.Conditions, func(c corev1.NamespaceCondition) bool { return c.Type == condition.Type })
	switch {
	case i < 0:
		namespace.Status.Conditions = append(namespace.Status.Conditions, condition)
	case namespace.Status.Conditions[i].Message == condition.Message:
		return nil
	default:
		namespace.Status.Conditions[i] = condition
	}
	if err := r.api.Status().Patch(ctx, namespace, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// Everything is all that the API server says a namespace can hold.
type Everything struct {
	Discovery discovery.ServerResourcesInterface
	Metadata  metadata.Interface
}

// Empty implements [Contents].
func (e Everything) Empty(ctx context.Context, namespace string) (left int, err error) {
	lists, err := e.Discovery.ServerPreferredResources()
	if err != nil {
		return 0, fmt.Errorf("asking what namespace %s can hold: %w", namespace, err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return 0, fmt.Errorf("reading a group of the management plane: %w", err)
		}
		for _, resource := range list.APIResources {
			if !resource.Namespaced || !sets.New(resource.Verbs...).HasAll("list", "delete", "deletecollection") {
				continue
			}
			of := e.Metadata.Resource(version.WithResource(resource.Name)).Namespace(namespace)
			if err := of.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return 0, fmt.Errorf("deleting the %s of namespace %s: %w", resource.Name, namespace, err)
			}
			there, err := of.List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil && !apierrors.IsNotFound(err) {
				return 0, fmt.Errorf("listing the %s of namespace %s: %w", resource.Name, namespace, err)
			}
			if err == nil {
				left += len(there.Items)
			}
		}
	}
	return left, nil
}
