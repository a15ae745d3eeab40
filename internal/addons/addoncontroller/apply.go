// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/plane/baseline"
)

// fieldOwner is the field manager of add-ons, which is EKS's.
const fieldOwner = client.FieldOwner("eks")

// Where the names of the add-ons are whose objects the service leaves alone.
const (
	managedNamespace = "muster-system"
	managedName      = "addons"
)

// Managed lists the add-ons that the cluster has or has had as Addons: their objects are no business of anybody else's.
func Managed(ctx context.Context, cluster client.Client) ([]string, error) {
	record := &corev1.ConfigMap{}
	err := cluster.Get(ctx, client.ObjectKey{Namespace: managedNamespace, Name: managedName}, record)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading which add-ons are managed: %w", err)
	}
	var names []string
	for name := range record.Data {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// markManaged records that an add-on is one.
func (r *addons) markManaged(ctx context.Context, name string) error {
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managedNamespace, Name: managedName}, Data: map[string]string{name: "managed"}}
	err := r.Cluster.Create(ctx, record, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
		if err := r.Cluster.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return fmt.Errorf("reading which add-ons are managed: %w", err)
		}
		if _, ok := record.Data[name]; ok {
			return nil
		}
		before := record.DeepCopy()
		if record.Data == nil {
			record.Data = map[string]string{}
		}
		record.Data[name] = "managed"
		err = r.Cluster.Patch(ctx, record, client.MergeFrom(before), fieldOwner)
	}
	if err != nil {
		return fmt.Errorf("recording that add-on %s is managed: %w", name, err)
	}
	return nil
}

// gone reports whether an object is not in the cluster.
func (r *addons) gone(ctx context.Context, objects []*unstructured.Unstructured) (bool, error) {
	for _, object := range objects {
		there := &metav1.PartialObjectMetadata{} // some are large
		there.SetGroupVersionKind(object.GroupVersionKind())
		err := r.Cluster.Get(ctx, client.ObjectKeyFromObject(object), there)
		if isAbsent(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("looking for %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return false, nil
}

// isAbsent reports whether an object does not exist. It does not exist either if the cluster lacks its kind.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// read reads the object of the same kind and name.
func (r *addons) read(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(object.GroupVersionKind())
	if err := r.Cluster.Get(ctx, client.ObjectKeyFromObject(object), there); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return there, nil
}

// apply brings the objects into the cluster, or returns the issue that keeps it from that: then nothing was changed.
func (r *addons) apply(ctx context.Context, a *v1alpha1.Addon, objects []*unstructured.Unstructured) (*v1alpha1.AddonIssue, error) {
	options := []client.ApplyOption{fieldOwner}
	if a.Spec.ResolveConflicts == v1alpha1.ConflictsOverwrite {
		options = append(options, client.ForceOwnership)
	}
	var conflicts []addon.Conflict
	kept := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		kept[i] = object
		issue, err := r.applyOne(ctx, object, append(slices.Clone(options), client.DryRunAll)...)
		if meta.IsNoMatchError(err) { // the add-on brings the kind along: nobody has set a field of an object of it
			err = nil
		}
		if err != nil {
			found := addon.Conflicts(object, err)
			if len(found) == 0 {
				return nil, err
			}
			conflicts = append(conflicts, found...)
			if kept[i], err = addon.Without(object, found); err != nil {
				return nil, err
			}
		}
		if issue != nil {
			return issue, nil
		}
	}
	if len(conflicts) > 0 && (a.Spec.ResolveConflicts != v1alpha1.ConflictsPreserve || a.Status.Applied == "") {
		return conflicted(conflicts), nil
	}
	for i, object := range kept {
		issue, err := r.applyOne(ctx, object, options...)
		if found := addon.Conflicts(object, err); len(found) > 0 { // since the dry run
			return conflicted(found), nil
		}
		if err != nil || issue != nil {
			return issue, err
		}
		if err := r.takeOver(ctx, objects[i]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// applyOne applies one object. A refusal of the API server is returned as an issue.
func (r *addons) applyOne(ctx context.Context, object *unstructured.Unstructured, options ...client.ApplyOption) (*v1alpha1.AddonIssue, error) {
	err := r.Cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), options...)
	if err != nil && isRefusal(err) {
		return &v1alpha1.AddonIssue{
			Code: issueDenied, ResourceIDs: []string{object.GetName()},
			Message: fmt.Sprintf("The API server does not take %s %s: %v", object.GetKind(), object.GetName(), err),
		}, nil
	}
	return nil, err
}

// isRefusal reports whether the API server does not take an object. A field that it does not know has no reason of its
// own: structuredmerge.go of apimachinery's managedfields says so in words.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), "failed to create typed patch object")
}

// takeOver has the field manager of self-managed add-ons give up its fields, after the add-on has applied its own: what
// both have set stays.
func (r *addons) takeOver(ctx context.Context, object *unstructured.Unstructured) error {
	there, err := r.read(ctx, object)
	if err != nil {
		return err
	}
	if !ownedBy(there, baseline.FieldOwner) {
		return nil
	}
	none := &unstructured.Unstructured{}
	none.SetGroupVersionKind(object.GroupVersionKind())
	none.SetNamespace(object.GetNamespace())
	none.SetName(object.GetName())
	if err := r.Cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(none), baseline.FieldOwner); err != nil {
		return fmt.Errorf("taking %s %s over: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// ownedBy reports whether a manager has applied fields of an object.
func ownedBy(object *unstructured.Unstructured, owner client.FieldOwner) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == string(owner) && e.Operation == metav1.ManagedFieldsOperationApply
	})
}

// conflicted is the issue of conflicts, in EKS's words.
func conflicted(conflicts []addon.Conflict) *v1alpha1.AddonIssue {
	issue := &v1alpha1.AddonIssue{Code: issueConflict}
	lines := make([]string, 0, len(conflicts)+1)
	lines = append(lines, "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode. Conflicts:")
	for _, conflict := range conflicts {
		lines = append(lines, conflict.String())
		if !slices.Contains(issue.ResourceIDs, conflict.Object) {
			issue.ResourceIDs = append(issue.ResourceIDs, conflict.Object)
		}
	}
	issue.Message = strings.Join(lines, "\n")
	return issue
}
