// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
	"muster.dev/muster/internal/plane/readiness"
)

const (
	// followAgain is the time between two looks while the API server does not follow the policies yet, and goneAgain while
	// pods of a deleted profile end.
	followAgain = 100 * time.Millisecond
	goneAgain   = time.Second
	// roleAgain is when a role is looked at again that could not be used.
	roleAgain = 10 * time.Second
	// soon is when a cache that is behind may have caught up.
	soon = 20 * time.Millisecond
	// policyAgain is how often it is looked whether somebody changed the policies while there are profiles.
	policyAgain = 30 * time.Second
)

// The reasons of the condition Ready of a profile.
const (
	reasonActive   = "Active"
	reasonApplying = "Creating"
	reasonDeleting = "Deleting"
)

// profiles reconciles the Fargate profiles of one cluster.
type profiles struct {
	world

	// idle reports whether the policies were removed, and no profile came since: nothing has to be asked of the cluster.
	idle bool
	// applied are the policies that were applied last, and when that was for the first time in this process.
	applied struct {
		revision string
		at       time.Time
	}
}

// Reconcile implements [reconcile.Reconciler].
func (r *profiles) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	all, err := r.profiles(ctx, r.management)
	if err != nil {
		return reconcile.Result{}, err
	}
	for i := range all {
		if p := &all[i]; p.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(p, v1alpha1.FinalizerFargateProfile) {
			before := p.DeepCopy()
			controllerutil.AddFinalizer(p, v1alpha1.FinalizerFargateProfile)
			if err := r.management.Patch(ctx, p, locked(before)); err != nil {
				return settle(0, fmt.Errorf("adding the finalizer to Fargate profile %s: %w", p.Spec.Name, err))
			}
		}
	}
	waits, err := r.enforce(ctx, fargate.Sorted(all))
	if err != nil {
		return settle(0, err)
	}
	again := policyAgain
	if len(all) == 0 {
		again = 0
	}
	var errs []error
	for i := range all {
		next, err := r.bring(ctx, &all[i], waits)
		errs = append(errs, err)
		if next > 0 {
			again = min(again, next)
		}
	}
	return settle(again, errors.Join(errs...))
}

// bring has a profile be Ready, or go. waits is why the API server does not follow the policies yet. It returns when to
// look again, or 0.
func (r *profiles) bring(ctx context.Context, p *v1alpha1.FargateProfile, waits string) (time.Duration, error) {
	if !p.DeletionTimestamp.IsZero() {
		return r.remove(ctx, p)
	}
	before := p.DeepCopy()
	status, reason, message, again := metav1.ConditionTrue, reasonActive, "pods that it selects have a machine each", time.Duration(0)
	profile, err := r.Roles.PrepareFargate(ctx, p.Spec.PodExecutionRoleARN)
	problem, unusable := errors.AsType[*fargate.RoleProblem](err)
	selects := p.Status.InstanceProfile != "" // a profile that selects pods does so until its role fails
	switch {
	case unusable:
		status, reason, message, again, err = metav1.ConditionFalse, problem.Reason, problem.Message, roleAgain, nil
	case err != nil:
		err = fmt.Errorf("preparing the pod execution role of Fargate profile %s: %w", p.Spec.Name, err)
		if selects {
			return 0, err
		}
		status, reason, message = metav1.ConditionFalse, reasonApplying, err.Error()
	case waits != "" && selects:
		return followAgain, nil
	case waits != "":
		status, reason, message, again = metav1.ConditionFalse, reasonApplying, waits, followAgain
	default:
		p.Status.InstanceProfile = profile
	}
	return again, errors.Join(err, r.write(ctx, before, p, status, reason, message))
}

// remove ends the pods of a deleted profile, and lets it go when their machines are gone.
func (r *profiles) remove(ctx context.Context, p *v1alpha1.FargateProfile) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(p, v1alpha1.FinalizerFargateProfile) {
		return 0, nil
	}
	machines, err := r.machines(ctx, r.live, func(*v1alpha1.Machine) bool { return true })
	if err != nil {
		return 0, err
	}
	pods, err := r.end(ctx, p, machines)
	if err != nil {
		return 0, err
	}
	left := slices.DeleteFunc(machines, func(m v1alpha1.Machine) bool { return m.Spec.Fargate.ProfileUID != p.UID })
	if len(left) > 0 || pods > 0 {
		before := p.DeepCopy()
		return goneAgain, r.write(ctx, before, p, metav1.ConditionFalse, reasonDeleting, fmt.Sprintf("%d of its pods and %d of their machines are left", pods, len(left)))
	}
	before := p.DeepCopy()
	controllerutil.RemoveFinalizer(p, v1alpha1.FinalizerFargateProfile)
	if err := r.management.Patch(ctx, p, locked(before)); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("removing the finalizer of Fargate profile %s: %w", p.Spec.Name, err)
	}
	if err := r.Roles.Tidy(ctx); err != nil {
		return 0, fmt.Errorf("removing the instance profile of Fargate profile %s: %w", p.Spec.Name, err)
	}
	return 0, nil
}

// end deletes the pods of a deleted profile, and counts those that are left: the pods that have one of the cluster's
// machines by the profile, and the pods that wait and that the profile's label names. The label of a pod with a machine
// does not count: everybody who may change the pod may change it, and a pod that named the scheduler by itself has none.
// Pods of a cluster that is being deleted, too, end with its machines.
func (r *profiles) end(ctx context.Context, p *v1alpha1.FargateProfile, machines []v1alpha1.Machine) (int, error) {
	profileOf := map[types.UID]types.UID{}
	for i := range machines {
		profileOf[machines[i].Spec.Fargate.PodUID] = machines[i].Spec.Fargate.ProfileUID
	}
	var all corev1.PodList
	if err := r.API.List(ctx, &all, client.MatchingFields{fieldScheduler: v1alpha1.FargateScheduler}); err != nil {
		return 0, fmt.Errorf("listing the pods of Fargate profile %s: %w", p.Spec.Name, err)
	}
	left := 0
	for i := range all.Items {
		pod := &all.Items[i]
		by, has := profileOf[pod.UID]
		waits := !has && pod.Spec.NodeName == "" && pod.Labels[v1alpha1.LabelFargateProfile] == p.Spec.Name
		if by != p.UID && !waits {
			continue
		}
		left++
		if !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.API.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return 0, fmt.Errorf("deleting pod %s/%s of Fargate profile %s: %w", pod.Namespace, pod.Name, p.Spec.Name, err)
		}
	}
	return left, nil
}

// fieldScheduler is the field by which an API server finds the pods of a scheduler.
const fieldScheduler = "spec.schedulerName"

// write sets the condition Ready of a profile, and says so by an Event if the reason is another one.
func (r *profiles) write(ctx context.Context, before, p *v1alpha1.FargateProfile, status metav1.ConditionStatus, reason, message string) error {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: readiness.Shorten(message), ObservedGeneration: p.Generation,
		LastTransitionTime: metav1.NewTime(r.Now().Truncate(time.Second)),
	})
	if equality.Semantic.DeepEqual(before.Status, p.Status) {
		return nil
	}
	if err := r.management.Status().Patch(ctx, p, locked(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Fargate profile %s: %w", p.Spec.Name, err)
	}
	if was == nil || was.Reason != reason {
		kind := corev1.EventTypeNormal
		if fargate.IsRoleProblem(reason) {
			kind = corev1.EventTypeWarning
		}
		r.told.Eventf(p, nil, kind, reason, "Reconcile", "%s", readiness.Shorten(message))
	}
	return nil
}

// locked is a patch that fails if the object changed since it was read, as from a cache that is behind.
func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// settle turns a conflict, which says that the cache is behind, into another look.
func settle(again time.Duration, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: again}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{}, err
}
