// SPDX-License-Identifier: Apache-2.0

package scalingcontroller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/scalinglaunch"
	"muster.dev/muster/internal/cloud/scalingplan"
)

const (
	// defaultMinHealthy and defaultMaxHealthy are Auto Scaling's percentages where a refresh names none.
	defaultMinHealthy = 90
	defaultMaxHealthy = 100
	// refreshFailures is how many launches in one place may fail, one after the other, before a refresh has failed.
	refreshFailures = 3
	// maxRefreshes is how many refreshes a group keeps.
	maxRefreshes = 20
	// rollback marks the instances that a refresh launched on its way back, after its id.
	rollback = "/rollback"
)

// errAgain has the group be read again: its spec was changed.
var errAgain = errors.New("the group was changed: it is looked at again")

// statusOf is a refresh in the group's status; nil if it has not begun.
func statusOf(g *v1alpha1.AutoScalingGroup, id string) *v1alpha1.RefreshStatus {
	at := slices.IndexFunc(g.Status.Refreshes, func(s v1alpha1.RefreshStatus) bool { return s.ID == id })
	if at < 0 {
		return nil
	}
	return &g.Status.Refreshes[at]
}

// running is the refresh that goes on; nil if none does.
func running(g *v1alpha1.AutoScalingGroup) *v1alpha1.RefreshStatus {
	if g.Spec.Refresh == nil || !g.DeletionTimestamp.IsZero() {
		return nil
	}
	if s := statusOf(g, g.Spec.Refresh.ID); s != nil && s.Status.Runs() {
		return s
	}
	return nil
}

// launchedBy marks an instance that is launched now.
func launchedBy(g *v1alpha1.AutoScalingGroup) string {
	switch s := running(g); {
	case s == nil:
		return ""
	case s.Status == v1alpha1.RefreshRollbackInProgress:
		return s.ID + rollback
	default:
		return s.ID
	}
}

// refresh is the refresh that goes on as the planner sees it.
func (v *view) refresh() *scalingplan.Refresh {
	if running(v.g) == nil {
		return nil
	}
	p := v.g.Spec.Refresh.Preferences
	return &scalingplan.Refresh{
		MinHealthy: percent(p.MinHealthyPercentage, defaultMinHealthy), MaxHealthy: percent(p.MaxHealthyPercentage, defaultMaxHealthy),
		Warmup: warmup(v.g.Spec), Protected: p.ScaleInProtectedInstances == "Refresh",
	}
}

func percent(of *int32, standard int) int {
	if of == nil {
		return standard
	}
	return int(*of)
}

// warmup is how long an instance of a refresh is in service before it counts as healthy.
func warmup(spec v1alpha1.AutoScalingGroupSpec) time.Duration {
	for _, of := range []*int32{spec.Refresh.Preferences.InstanceWarmup, spec.DefaultInstanceWarmup} {
		if of != nil {
			return time.Duration(*of) * time.Second
		}
	}
	return time.Duration(spec.HealthCheckGracePeriod) * time.Second
}

// takeRefresh moves the refresh of a group on: it begins, is cancelled, goes back, fails or has succeeded.
func (r *groups) takeRefresh(ctx context.Context, v *view) error {
	asked := v.g.Spec.Refresh
	if asked == nil || !v.g.DeletionTimestamp.IsZero() {
		return nil
	}
	s := statusOf(v.g, asked.ID)
	if s == nil {
		if more := len(v.g.Status.Refreshes) - maxRefreshes + 1; more > 0 {
			v.g.Status.Refreshes = v.g.Status.Refreshes[more:]
		}
		v.g.Status.Refreshes = append(v.g.Status.Refreshes, v1alpha1.RefreshStatus{ID: asked.ID, Status: v1alpha1.RefreshInProgress, StartTime: asked.StartTime, Asked: *asked.DeepCopy(), Total: -1})
		s = statusOf(v.g, asked.ID)
		v.g.Status.Failures = nil // failures before it say nothing about it
	}
	if !s.Status.Runs() {
		return nil
	}
	switch {
	case asked.Ended == v1alpha1.RefreshCancelled:
		r.finish(s, v1alpha1.RefreshCancelledState, "Cancelled due to user request.")
		return nil
	case asked.Ended == v1alpha1.RefreshRolledBack && s.Status != v1alpha1.RefreshRollbackInProgress:
		s.Status, s.Total, s.Reason = v1alpha1.RefreshRollbackInProgress, -1, "Rolled back due to user request."
	case r.cannotGoOn(v):
		if s.Status == v1alpha1.RefreshRollbackInProgress || !asked.Preferences.AutoRollback || asked.LaunchTemplate == nil && asked.MixedInstancesPolicy == nil {
			r.finish(s, map[bool]v1alpha1.RefreshState{true: v1alpha1.RefreshRollbackFailed, false: v1alpha1.RefreshFailed}[s.Status == v1alpha1.RefreshRollbackInProgress], lastFailure(v.g))
			return nil
		}
		s.Status, s.Total, s.Reason, v.g.Status.Failures = v1alpha1.RefreshRollbackInProgress, -1, lastFailure(v.g), nil
	}
	v.outdated = r.outdated(ctx, v, s)
	left, waits := v.left(r.Now())
	if s.Total < 0 {
		s.Total = left
	}
	s.Left = left
	if left > 0 || waits != "" {
		if s.Status == v1alpha1.RefreshInProgress {
			s.Reason = waits
		}
		return nil
	}
	return r.succeed(ctx, v, s)
}

// finish ends a refresh.
func (r *groups) finish(s *v1alpha1.RefreshStatus, state v1alpha1.RefreshState, reason string) {
	s.Status, s.Reason, s.EndTime = state, reason, new(metav1.NewTime(r.Now()))
}

// succeed ends a refresh that has replaced everything. The group has the template of the refresh before that is told.
func (r *groups) succeed(ctx context.Context, v *view, s *v1alpha1.RefreshStatus) error {
	if s.Status == v1alpha1.RefreshRollbackInProgress {
		r.finish(s, v1alpha1.RefreshRollbackSuccessful, s.Reason)
		return nil
	}
	asked := v.g.Spec.Refresh
	if asked.LaunchTemplate == nil && asked.MixedInstancesPolicy == nil {
		r.finish(s, v1alpha1.RefreshSuccessful, "")
		return nil
	}
	changed := v.g.DeepCopy()
	changed.Status = v1alpha1.AutoScalingGroupStatus{}
	before := changed.DeepCopy()
	changed.Spec.LaunchTemplate, changed.Spec.MixedInstancesPolicy = asked.LaunchTemplate, asked.MixedInstancesPolicy
	changed.Spec.Refresh.LaunchTemplate, changed.Spec.Refresh.MixedInstancesPolicy = nil, nil
	if err := r.Management.Patch(ctx, changed, locked(before)); err != nil {
		return fmt.Errorf("giving the group the launch template of its refresh: %w", err)
	}
	return errAgain
}

// cannotGoOn reports whether the launches of a group fail again and again.
func (*groups) cannotGoOn(v *view) bool {
	return slices.ContainsFunc(v.g.Status.Failures, func(f v1alpha1.LaunchFailure) bool { return f.Count >= refreshFailures })
}

func lastFailure(g *v1alpha1.AutoScalingGroup) string {
	for _, a := range slices.Backward(g.Status.Activities) {
		if a.StatusCode == "Failed" {
			return a.StatusMessage
		}
	}
	return ""
}

// outdated says which instances a refresh is to replace: on its way, those that it did not launch itself, but for those that match
// if it leaves them alone; on its way back, those that it launched.
func (r *groups) outdated(ctx context.Context, v *view, s *v1alpha1.RefreshStatus) func(v1alpha1.ScalingInstance) bool {
	if s.Status == v1alpha1.RefreshRollbackInProgress {
		return func(i v1alpha1.ScalingInstance) bool { return i.Refresh == s.ID }
	}
	matches := func(v1alpha1.ScalingInstance) bool { return false }
	if s.Asked.Preferences.SkipMatching {
		wants := wantedOf(v.g)
		versions := map[string]scalinglaunch.Resolved{}
		for _, t := range typesOf(wants) {
			of, err := r.Launcher.Resolve(ctx, scalinglaunch.Order{Template: wants.templateOf(t.Name), InstanceType: t.Name, SubnetID: string(v.g.Spec.SubnetIDs[0])})
			if err == nil {
				versions[of.InstanceType] = of
			}
		}
		matches = func(i v1alpha1.ScalingInstance) bool {
			of, ok := versions[i.InstanceType]
			return ok && i.LaunchTemplate != nil && i.LaunchTemplate.ID == of.Template.ID && i.LaunchTemplate.Version == of.Template.Version
		}
	}
	return func(i v1alpha1.ScalingInstance) bool { return i.Refresh != s.ID && !matches(i) }
}

// left counts the instances that are still to be replaced, and says what a refresh that has replaced all of them waits for.
func (v *view) left(now time.Time) (count int32, waits string) {
	leaves := v.g.Spec.Refresh.Preferences.ScaleInProtectedInstances == "Ignore"
	all := v.instances()
	for _, i := range all {
		switch {
		case !i.Counts():
		case i.Outdated && (!leaves || !i.Protected):
			count++
			if i.Protected && v.g.Spec.Refresh.Preferences.ScaleInProtectedInstances != "Refresh" {
				waits = fmt.Sprintf("Waiting for the scale-in protection of %s to be removed.", i.ID)
			}
		case i.State != v1alpha1.LifecycleInService || now.Sub(i.Since) < warmup(v.g.Spec):
			waits = cmp.Or(waits, "Waiting for remaining instances to be available. For example: "+i.ID+".")
		}
	}
	if have := scalingplan.Capacity(all); have < int(v.g.Spec.DesiredCapacity) {
		waits = cmp.Or(waits, fmt.Sprintf("The group has a capacity of %d of %d.", have, v.g.Spec.DesiredCapacity))
	}
	return count, waits
}
