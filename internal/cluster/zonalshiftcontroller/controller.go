// SPDX-License-Identifier: Apache-2.0

package zonalshiftcontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/zonalshift"
	"muster.dev/muster/internal/plane/readiness"
)

const (
	// pendingAgain is the time between two looks while an API server does not follow the policy yet, or still does.
	pendingAgain = 100 * time.Millisecond
	// policyAgain is how often it is looked whether the policy is there, and slicesAgain whether slices are as they are
	// to be, while a shift is active.
	policyAgain = 2 * time.Second
	slicesAgain = 10 * time.Second
	// settled is the time after which no API server has a policy that is gone.
	settled = 2 * time.Second
)

// The reasons of the condition Applied, and of Events.
const (
	reasonApplying = "Applying"
	reasonApplied  = "Applied"
	reasonEnding   = "Ending"
	reasonEnded    = "Ended"
	reasonRestored = "ZonalShiftPolicyRestored"
	reasonStranded = "ServicesWithoutEndpoints"
)

// reconciler looks at one cluster and its shifts.
type reconciler struct {
	Config

	management client.Client // reads from the cache
	nodes      client.Reader // the cluster's Nodes, from the cache
	recorder   events.EventRecorder

	// looked is when slices were looked at last, if all were as they are to be; applied is the shift of the last look.
	looked  time.Time
	applied string
	// idle says that a look without a shift found nothing to undo: nothing has to be asked of the cluster then.
	idle bool
}

// seen is what came of a look at the cluster's objects.
type seen struct {
	changed  bool // something was written
	pending  int  // Nodes and slices that are not as they are to be
	listed   bool // slices were looked at
	stranded []string
}

// Reconcile implements [reconcile.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	of := &v1alpha1.Cluster{}
	if err := r.management.Get(ctx, request.NamespacedName, of); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !of.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	var shifts v1alpha1.ZonalShiftList
	if err := r.management.List(ctx, &shifts, client.InNamespace(request.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing zonal shifts: %w", err)
	}
	now := r.Now()
	plan := zonalshift.Decide(of.Spec.ZonalShift.On(), shifts.Items, now)
	if err := r.publish(ctx, of, plan.Zones()); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.begin(ctx, plan); err != nil {
		return reconcile.Result{}, err
	}
	if r.idle = r.idle && plan.Active == nil && len(plan.Ended) == 0; r.idle {
		return reconcile.Result{}, nil
	}
	found, err := r.carryOut(ctx, of, plan, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if found.pending > 0 {
		return reconcile.Result{RequeueAfter: pendingAgain}, nil
	}
	if err := r.finish(ctx, plan, found, now); err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case plan.Active != nil:
		return reconcile.Result{RequeueAfter: max(min(policyAgain, plan.Active.Spec.ExpiryTime.Sub(now)), time.Millisecond)}, nil
	case found.changed:
		return reconcile.Result{RequeueAfter: settled}, nil // another API server may have had the policy until now
	}
	r.idle = true
	return reconcile.Result{}, nil
}

// publish writes the shifted zones into the status of the Cluster, where planners of machines read them.
func (r *reconciler) publish(ctx context.Context, of *v1alpha1.Cluster, zones []string) error {
	if slices.Equal(of.Status.ShiftedZones, zones) {
		return nil
	}
	before := of.DeepCopy()
	of.Status.ShiftedZones = zones
	if err := r.management.Status().Patch(ctx, of, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the shifted zones of the cluster: %w", err)
	}
	return nil
}

// carryOut brings Nodes, policy and slices to what a plan says.
func (r *reconciler) carryOut(ctx context.Context, of *v1alpha1.Cluster, plan zonalshift.Plan, now time.Time) (seen, error) {
	var found seen
	if err := r.mark(ctx, plan.Zones(), &found); err != nil {
		return found, err
	}
	written, err := r.policy(ctx, of, plan)
	if err != nil {
		return found, err
	}
	found.changed = found.changed || written
	active := ""
	if plan.Active != nil {
		active = plan.Active.Name
	}
	if active != "" && active == r.applied && !written && now.Sub(r.looked) < slicesAgain {
		return found, nil
	}
	found.listed = true
	if err := r.slices(ctx, plan.Zones(), &found); err != nil {
		return found, err
	}
	if r.applied = active; found.pending > 0 || found.changed {
		r.looked = time.Time{} // another API server may be behind: the next look is at slices, too
	} else {
		r.looked = now
	}
	return found, nil
}

// mark cordons the Nodes of shifted zones, and has those of others take pods again. A Node that has changed since the
// cache saw it is looked at again.
func (r *reconciler) mark(ctx context.Context, zones []string, found *seen) error {
	var all corev1.NodeList
	if err := r.nodes.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	for i := range all.Items {
		before := &all.Items[i]
		node := before.DeepCopy()
		if !zonalshift.Mark(node, zones) {
			continue
		}
		found.changed = true
		err := r.API.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			found.pending++
		} else if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("marking Node %s: %w", node.Name, err)
		}
	}
	return nil
}

// begin says of the active shift, and of those that end, that they are on their way.
func (r *reconciler) begin(ctx context.Context, plan zonalshift.Plan) error {
	if s := plan.Active; s != nil && meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionApplied) == nil {
		if err := r.write(ctx, s, metav1.ConditionFalse, reasonApplying, "pods of "+s.Spec.AwayFrom+" are being taken out of Services", nil); err != nil {
			return err
		}
	}
	for _, ending := range plan.Ended {
		if err := r.write(ctx, ending.Shift, metav1.ConditionFalse, reasonEnding, ending.Message+"; it is being undone", nil); err != nil {
			return err
		}
	}
	return nil
}

// finish says of shifts that they are applied, or that they have ended.
func (r *reconciler) finish(ctx context.Context, plan zonalshift.Plan, found seen, now time.Time) error {
	if s := plan.Active; s != nil {
		message := "no Service reaches a pod in " + s.Spec.AwayFrom
		if len(found.stranded) > 0 {
			message += "; without a ready pod elsewhere: " + strings.Join(found.stranded, ", ")
		}
		is := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionApplied)
		if is == nil || is.Status != metav1.ConditionTrue || found.listed && is.Message != readiness.Shorten(message) {
			if err := r.write(ctx, s, metav1.ConditionTrue, reasonApplied, message, func() { s.Status.Phase = v1alpha1.ZonalShiftActive }); err != nil {
				return err
			}
			if len(found.stranded) > 0 {
				r.recorder.Eventf(s, nil, corev1.EventTypeWarning, reasonStranded, "Shift", "%s", readiness.Shorten(message))
			}
		}
	}
	for _, ending := range plan.Ended {
		if err := r.write(ctx, ending.Shift, metav1.ConditionFalse, reasonEnded, ending.Message, func() {
			ending.Shift.Status.Phase, ending.Shift.Status.EndedAt = ending.Phase, new(metav1.NewTime(now.Truncate(time.Second)))
		}); err != nil {
			return err
		}
	}
	return nil
}

// write sets the condition Applied of a shift and what else a function sets, and says so by an Event when the reason is
// another one.
func (r *reconciler) write(ctx context.Context, s *v1alpha1.ZonalShift, status metav1.ConditionStatus, reason, message string, more func()) error {
	before := s.DeepCopy()
	changed := meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionApplied, Status: status, Reason: reason, Message: readiness.Shorten(message), ObservedGeneration: s.Generation,
		LastTransitionTime: metav1.NewTime(r.Now().Truncate(time.Second)),
	})
	if more != nil {
		more()
	}
	if !changed && equality.Semantic.DeepEqual(before.Status, s.Status) {
		return nil
	}
	if err := r.management.Status().Patch(ctx, s, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of zonal shift %s: %w", s.Name, err)
	}
	if is := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionApplied); is == nil || is.Reason != reason {
		r.recorder.Eventf(s, nil, corev1.EventTypeNormal, reason, "Shift", "%s", readiness.Shorten(message))
	}
	return nil
}
