// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
)

// remove removes the objects of an add-on from the cluster, unless they are to stay, and lets the Addon go once they
// are gone.
func (r *addons) remove(ctx context.Context, a *v1alpha1.Addon) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(a, v1alpha1.FinalizerAddon) {
		return reconcile.Result{}, nil
	}
	if a.Status.Phase != v1alpha1.AddonDeleting {
		if err := r.write(ctx, a, func(s *v1alpha1.AddonStatus) { s.Phase, s.ObservedGeneration = v1alpha1.AddonDeleting, a.Generation }); err != nil {
			return settle(err)
		}
	}
	if !a.Spec.Preserve {
		left, err := r.removeObjects(ctx, a.Spec.AddonName)
		if err != nil {
			return reconcile.Result{}, err
		}
		if left {
			return reconcile.Result{RequeueAfter: movingAgain}, nil
		}
		if r.Unload != nil {
			if err := r.Unload(ctx, a.Spec.AddonName); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	before := a.DeepCopy()
	controllerutil.RemoveFinalizer(a, v1alpha1.FinalizerAddon)
	if err := r.api.Patch(ctx, a, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return settle(fmt.Errorf("removing the finalizer of add-on %s: %w", a.Name, err))
	}
	r.mu.Lock()
	delete(r.answered, a.Name)
	r.mu.Unlock()
	return reconcile.Result{}, nil
}

// removeObjects deletes the objects that the add-on has applied, but for the kinds that it brought along, and reports
// whether any is left.
func (r *addons) removeObjects(ctx context.Context, name string) (left bool, err error) {
	known, ok := r.Catalogue("").Find(name)
	if !ok || known.OnMachines != "" {
		return false, nil
	}
	objects, err := r.all(known)
	if err != nil {
		return false, err
	}
	return r.removeThese(ctx, name, objects)
}

// removeOthers deletes what an earlier configuration of the add-on had beside these objects.
func (r *addons) removeOthers(ctx context.Context, known addon.Addon, objects []*unstructured.Unstructured) error {
	all, err := r.all(known)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(all, func(one *unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
			return object.GroupVersionKind() == one.GroupVersionKind() && client.ObjectKeyFromObject(object) == client.ObjectKeyFromObject(one)
		})
	})
	_, err = r.removeThese(ctx, known.Name, others)
	return err
}

// all are the objects that an add-on can have, whatever its configuration is.
func (r *addons) all(known addon.Addon) ([]*unstructured.Unstructured, error) {
	base, err := r.Objects(known.Name)
	if err != nil {
		return nil, err
	}
	return known.Objects(base, nil, "")
}

// removeThese deletes those of the objects that the add-on has applied, and reports whether any is left.
func (r *addons) removeThese(ctx context.Context, name string, objects []*unstructured.Unstructured) (left bool, err error) {
	for _, object := range objects {
		there, err := r.read(ctx, object)
		if isAbsent(err) || err == nil && !ownedBy(there, fieldOwner) {
			continue
		}
		if err != nil {
			return false, err
		}
		left = true
		if !there.GetDeletionTimestamp().IsZero() {
			continue
		}
		uid := there.GetUID()
		err = r.Cluster.Delete(ctx, there, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return false, fmt.Errorf("deleting %s %s of add-on %s: %w", object.GetKind(), object.GetName(), name, err)
		}
	}
	return left, nil
}
