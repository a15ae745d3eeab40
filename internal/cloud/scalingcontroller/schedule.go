// SPDX-License-Identifier: Apache-2.0

package scalingcontroller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/scalingplan"
)

// schedule carries out the scheduled actions of a group that are due, in one write with the sizes, and returns when the next is.
func (r *groups) schedule(ctx context.Context, g *v1alpha1.AutoScalingGroup) (wait time.Duration, changed bool, err error) {
	if !g.DeletionTimestamp.IsZero() || len(g.Spec.AutoScaling.ScheduledActions) == 0 {
		return 0, false, nil
	}
	before := g.DeepCopy()
	out := r.run(ctx, g.Spec.Name, scalingplan.Sizes{Min: g.Spec.MinSize, Max: g.Spec.MaxSize, Desired: g.Spec.DesiredCapacity}, scalingplan.MaxCapacity, &g.Spec.AutoScaling)
	if !out.Changed {
		return until(out.Next, r.Now()), false, nil
	}
	g.Spec.MinSize, g.Spec.MaxSize, g.Spec.DesiredCapacity = out.Sizes.Min, out.Sizes.Max, out.Sizes.Desired
	if out.Cause != "" {
		g.Spec.Change = &v1alpha1.ScalingChange{ID: newUUID(), Cause: out.Cause}
	}
	err = r.Management.Patch(ctx, g, locked(before))
	if apierrors.IsInvalid(err) { // the sizes alone: what was due is done, and the group goes on as it is
		r.refused(ctx, g.Spec.Name, err)
		left := before.DeepCopy()
		left.Spec.AutoScaling.ScheduledActions = out.Actions
		err = r.Management.Patch(ctx, left, locked(before))
	}
	if err != nil {
		return 0, false, fmt.Errorf("carrying out scheduled actions: %w", err)
	}
	return 0, true, nil
}

// refused logs that a group cannot have the sizes of its scheduled actions.
func (c Config) refused(ctx context.Context, name string, err error) {
	c.Log.WarnContext(ctx, "a scheduled action cannot be carried out: the group keeps its sizes", "group", name, "error", err)
}

// run carries out what is due, in memory.
func (c Config) run(ctx context.Context, name string, sizes scalingplan.Sizes, most int32, of *v1alpha1.AutoScaling) scalingplan.Schedule {
	out := scalingplan.Run(sizes, most, of.ScheduledActions, of.Suspends(v1alpha1.ProcessScheduledActions), zone, c.Now())
	for _, problem := range out.Problems {
		c.Log.WarnContext(ctx, "a scheduled action cannot be carried out", "group", name, "problem", problem)
	}
	of.ScheduledActions = out.Actions
	return out
}

// zone is a time zone by its name, which was checked when the action was made; UTC if the host does not know it any more.
func zone(name string) *time.Location {
	if found, err := time.LoadLocation(name); err == nil {
		return found
	}
	return time.UTC
}

// until is the time until a moment; 0 if there is no such moment.
func until(next, now time.Time) time.Duration {
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), soon)
}

// schedules carries out the scheduled actions of node groups.
type schedules struct{ Config }

// Reconcile implements [reconcile.Reconciler].
func (r *schedules) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	g := &v1alpha1.NodeGroup{}
	if err := r.Management.Get(ctx, request.NamespacedName, g); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !g.DeletionTimestamp.IsZero() || len(g.Spec.ScalingGroup().ScheduledActions) == 0 {
		return reconcile.Result{}, nil
	}
	before := g.DeepCopy()
	s := &g.Spec.ScalingConfig
	out := r.run(ctx, g.Spec.Name, scalingplan.Sizes{Min: s.MinSize, Max: s.MaxSize, Desired: s.DesiredSize}, v1alpha1.MaxGroupSize, g.Spec.AutoScaling)
	if !out.Changed {
		return reconcile.Result{RequeueAfter: until(out.Next, r.Now())}, nil
	}
	s.MinSize, s.MaxSize, s.DesiredSize = out.Sizes.Min, out.Sizes.Max, out.Sizes.Desired
	err := r.Management.Patch(ctx, g, locked(before))
	if apierrors.IsInvalid(err) {
		r.refused(ctx, g.Spec.Name, err)
		left := before.DeepCopy()
		left.Spec.AutoScaling.ScheduledActions = out.Actions
		err = r.Management.Patch(ctx, left, locked(before))
	}
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: soon}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("carrying out the scheduled actions of node group %s: %w", g.Spec.Name, err)
	}
	return reconcile.Result{RequeueAfter: until(out.Next, r.Now())}, nil
}
