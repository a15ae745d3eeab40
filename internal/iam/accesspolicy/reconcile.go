// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
)

// Config is what the part needs.
type Config struct {
	Log *slog.Logger
	Now func() time.Time
}

// Reconciler brings the bindings of one entry in step with it.
type Reconciler struct {
	client client.Client
	log    *slog.Logger
	now    func() time.Time
}

// New makes a reconciler. The scheme of the client must know access.muster.dev, rbac and core.
func New(c client.Client, config Config) (*Reconciler, error) {
	if config.Log == nil || config.Now == nil {
		return nil, errors.New("access policies need a log and a clock")
	}
	return &Reconciler{client: c, log: config.Log, now: config.Now}, nil
}

// Reconcile makes what is missing and removes what nothing asks for any more. Permissions that are not allowed any more
// go first, and one thing that fails keeps nothing else from being done.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	name := request.Name
	entry := &accessv1alpha1.AccessEntry{}
	err := r.client.Get(ctx, types.NamespacedName{Name: name}, entry)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return reconcile.Result{}, fmt.Errorf("reading the access entry %s: %w", name, err)
	}
	var plan Plan
	if !gone && entry.DeletionTimestamp.IsZero() {
		namespaces, err := r.namespaces(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
		plan = NewPlan(entry, namespaces)
	}
	there, err := r.bindings(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	failure := errors.Join(r.remove(ctx, plan, there), r.apply(ctx, entry, plan, there))
	if gone {
		return reconcile.Result{}, failure
	}
	told := r.tell(ctx, entry, plan, failure)
	if failure == nil && apierrors.IsConflict(told) { // somebody wrote another condition, and no watch reports that
		return reconcile.Result{RequeueAfter: firstRetry}, nil
	}
	return reconcile.Result{}, errors.Join(failure, told)
}

// namespaces returns the namespaces in which objects can be made.
func (r *Reconciler) namespaces(ctx context.Context) ([]string, error) {
	list := &corev1.NamespaceList{}
	if err := r.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// bindings returns the existing bindings of an access entry.
func (r *Reconciler) bindings(ctx context.Context, entry string) ([]state, error) {
	var found []state
	cluster := &rbacv1.ClusterRoleBindingList{}
	if err := r.client.List(ctx, cluster, labels()); err != nil {
		return nil, fmt.Errorf("listing cluster role bindings: %w", err)
	}
	for i := range cluster.Items {
		if b := &cluster.Items[i]; ours(b, entry) {
			found = append(found, state{b, b.RoleRef, b.Subjects})
		}
	}
	namespaced := &rbacv1.RoleBindingList{}
	if err := r.client.List(ctx, namespaced, labels()); err != nil {
		return nil, fmt.Errorf("listing role bindings: %w", err)
	}
	for i := range namespaced.Items {
		if b := &namespaced.Items[i]; ours(b, entry) {
			found = append(found, state{b, b.RoleRef, b.Subjects})
		}
	}
	return found, nil
}

// remove deletes what the plan does not have, or has with another role.
func (r *Reconciler) remove(ctx context.Context, plan Plan, there []state) error {
	var failures []error
	for _, s := range there {
		if slices.ContainsFunc(plan.Bindings, func(b Binding) bool { return b.of(s.object) && s.roleGood(b) }) {
			continue
		}
		uid := s.object.GetUID()
		err := r.client.Delete(ctx, s.object, client.Preconditions{UID: &uid})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it is gone, or another: a watch tells of it
			continue
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("removing the binding %s: %w", where(s.object.GetNamespace(), s.object.GetName()), err))
			continue
		}
		r.log.InfoContext(ctx, "binding removed", "namespace", s.object.GetNamespace(), "binding", s.object.GetName())
	}
	return errors.Join(failures...)
}

// apply makes and corrects what the plan has.
func (r *Reconciler) apply(ctx context.Context, entry *accessv1alpha1.AccessEntry, plan Plan, there []state) error {
	var failures []error
	for _, b := range plan.Bindings {
		if slices.ContainsFunc(there, func(s state) bool { return b.of(s.object) && s.good(b, entry) }) {
			continue
		}
		err := r.client.Apply(ctx, b.configuration(entry), fieldOwner, client.ForceOwnership)
		if b.Namespace != "" && (apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)) { // a watch tells of it
			continue
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("applying the binding %s: %w", where(b.Namespace, b.Name), err))
			continue
		}
		r.log.InfoContext(ctx, "binding applied", "namespace", b.Namespace, "binding", b.Name, "role", b.ClusterRole)
	}
	return errors.Join(failures...)
}

func where(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// tell writes the condition of the entry.
func (r *Reconciler) tell(ctx context.Context, entry *accessv1alpha1.AccessEntry, plan Plan, failure error) error {
	if !entry.DeletionTimestamp.IsZero() {
		return nil
	}
	condition := metav1.Condition{
		Type: accessv1alpha1.ConditionPoliciesApplied, ObservedGeneration: entry.Generation, LastTransitionTime: metav1.NewTime(r.now()),
		Status: metav1.ConditionTrue, Reason: "Applied", Message: fmt.Sprintf("%d bindings say what %d access policies say", len(plan.Bindings), len(entry.Spec.AccessPolicies)),
	}
	switch {
	case failure != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Failed", failure.Error()
	case len(plan.Problems) > 0:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Unusable", strings.Join(plan.Problems, "; ")
	case len(plan.Absent) > 0:
		condition.Message += fmt.Sprintf("; they will hold in the namespaces %s once these are made", strings.Join(plan.Absent, ", "))
	}
	condition.Message = clip(condition.Message)
	changed := entry.DeepCopy()
	meta.SetStatusCondition(&changed.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(entry.Status, changed.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(entry, client.MergeFromWithOptimisticLock{}) // others write conditions too, and it is one list
	if err := r.client.Status().Patch(ctx, changed, patch, fieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of the access entry %s: %w", entry.Name, err)
	}
	return nil
}

// clip keeps a message within what a condition may hold (32 KiB), and readable.
func clip(s string) string {
	const most = 2048
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
