// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

const rolledOut = "its machines are replaced by UpdateNodegroupVersion"

// preferences are how a refresh goes on. The front refuses checkpoints, alarms and bake times.
type preferences struct {
	AutoRollback, SkipMatching                                 *bool
	InstanceWarmup, MaxHealthyPercentage, MinHealthyPercentage *int32
	ScaleInProtectedInstances, StandbyInstances                string
}

type startRefreshInput struct {
	AutoScalingGroupName, Strategy string
	DesiredConfiguration           *launches
	Preferences                    *preferences
}

type refreshOutput struct{ InstanceRefreshID string }

func startInstanceRefresh(a *api) awsfront.Spec[startRefreshInput, refreshOutput] {
	return awsfront.Spec[startRefreshInput, refreshOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *startRefreshInput) ([]awsfront.Target, error) {
			targets, err := a.about(ctx, call, in.AutoScalingGroupName)
			if err != nil || in.DesiredConfiguration == nil {
				return targets, err
			}
			launched, err := a.aboutLaunches(ctx, call, in.AutoScalingGroupName, *in.DesiredConfiguration, targets[0].Conditions, nil)
			return append(targets, launched...), err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *startRefreshInput) (*refreshOutput, error) {
			if in.Strategy != "" && in.Strategy != "Rolling" {
				return nil, awsfault.Errorf(invalid, "The strategy %.40q is not known here: it must be Rolling", in.Strategy)
			}
			id := newUUID()
			return &refreshOutput{id}, a.changeOwn(ctx, in.AutoScalingGroupName, rolledOut, func(g *group) error {
				if r := g.refresh(); r != nil {
					return awsfault.Errorf("InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh: %s, which is %s", r.ID, r.Status)
				}
				asked := &v1alpha1.InstanceRefresh{ID: id, StartTime: metav1.NewTime(call.Now)}
				var err error
				if asked.Preferences, err = in.Preferences.kept(g); err != nil {
					return err
				}
				if in.DesiredConfiguration != nil {
					launched, err := a.read(ctx, *in.DesiredConfiguration, g.own.Spec.SubnetIDs)
					if err != nil {
						return err
					}
					asked.LaunchTemplate, asked.MixedInstancesPolicy = launched.template, launched.mixed
				}
				if asked.Preferences.AutoRollback && !reversible(g.own.Spec, asked) {
					return awsfault.Errorf(invalid, "AutoRollback needs a DesiredConfiguration, and numbers as versions of the launch templates: $Latest and $Default may be others by then")
				}
				g.own.Spec.Refresh = asked
				return nil
			})
		},
	}
}

// kept checks the preferences of a request.
func (p *preferences) kept(g *group) (v1alpha1.RefreshPreferences, error) {
	if p == nil {
		return v1alpha1.RefreshPreferences{}, nil
	}
	kept := v1alpha1.RefreshPreferences{
		MinHealthyPercentage: p.MinHealthyPercentage, MaxHealthyPercentage: p.MaxHealthyPercentage, InstanceWarmup: p.InstanceWarmup,
		SkipMatching: p.SkipMatching != nil && *p.SkipMatching, AutoRollback: p.AutoRollback != nil && *p.AutoRollback, ScaleInProtectedInstances: p.ScaleInProtectedInstances,
	}
	least, most := int32(90), int32(100)
	if p.MinHealthyPercentage != nil {
		least = *p.MinHealthyPercentage
	}
	if p.MaxHealthyPercentage != nil {
		most = *p.MaxHealthyPercentage
	}
	switch {
	case least < 0 || least > 100:
		return kept, awsfault.Errorf(invalid, "MinHealthyPercentage is %d: it must be from 0 to 100", least)
	case most < 100 || most > 200 || most-least > 100:
		return kept, awsfault.Errorf(invalid, "MaxHealthyPercentage is %d: it must be from 100 to 200, and at most 100 above MinHealthyPercentage, which is %d", most, least)
	case least == 100 && (most == 100 || g.sizes().Desired >= g.sizes().Max):
		return kept, awsfault.Errorf(invalid, "MinHealthyPercentage 100 lets no instance go before another is in service: MaxHealthyPercentage is %d, and the group has a desired capacity of %d and a max value of %d; raise both, or write less",
			most, g.sizes().Desired, g.sizes().Max)
	case p.InstanceWarmup != nil && *p.InstanceWarmup < 0:
		return kept, awsfault.Errorf(invalid, "InstanceWarmup is %d seconds: it must be at least 0", *p.InstanceWarmup)
	case !slices.Contains([]string{"", "Refresh", "Ignore", "Wait"}, p.ScaleInProtectedInstances):
		return kept, awsfault.Errorf(invalid, "ScaleInProtectedInstances %.40q is not valid: it must be Refresh, Ignore or Wait", p.ScaleInProtectedInstances)
	case p.StandbyInstances != "" && p.StandbyInstances != "Ignore":
		return kept, awsfault.Errorf(invalid, "StandbyInstances %.40q is not known here: instances in standby are left alone, so it must be Ignore", p.StandbyInstances)
	}
	return kept, nil
}

// refresh is the refresh of a group that goes on, or is to begin; nil if there is none.
func (g *group) refresh() *v1alpha1.RefreshStatus {
	asked := g.own.Spec.Refresh
	if asked == nil {
		return nil
	}
	for i := range g.own.Status.Refreshes {
		if s := &g.own.Status.Refreshes[i]; s.ID == asked.ID {
			if s.Status.Runs() {
				return s
			}
			return nil
		}
	}
	return &v1alpha1.RefreshStatus{ID: asked.ID, Status: v1alpha1.RefreshPending, StartTime: asked.StartTime, Asked: *asked}
}

// reversible reports whether a refresh can be taken back: it has a template of its own, and all versions are numbers.
func reversible(spec v1alpha1.AutoScalingGroupSpec, asked *v1alpha1.InstanceRefresh) bool {
	of := func(t *v1alpha1.LaunchTemplateReference, p *v1alpha1.MixedInstancesPolicy) *v1alpha1.LaunchTemplateReference {
		if p != nil {
			return &p.LaunchTemplate
		}
		return t
	}
	before, after := of(spec.LaunchTemplate, spec.MixedInstancesPolicy), of(asked.LaunchTemplate, asked.MixedInstancesPolicy)
	return before != nil && after != nil && !strings.HasPrefix(before.Version, "$") && !strings.HasPrefix(after.Version, "$")
}

type cancelRefreshInput struct {
	AutoScalingGroupName          string
	WaitForTransitioningInstances *bool // instances on their way are part of the group's capacity all the same
}

func cancelInstanceRefresh(a *api) awsfront.Spec[cancelRefreshInput, refreshOutput] {
	return awsfront.Spec[cancelRefreshInput, refreshOutput]{
		About: aboutGroup(a, func(in *cancelRefreshInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *cancelRefreshInput) (*refreshOutput, error) {
			return a.endRefresh(ctx, in.AutoScalingGroupName, v1alpha1.RefreshCancelled)
		},
	}
}

type rollbackRefreshInput struct{ AutoScalingGroupName string }

func rollbackInstanceRefresh(a *api) awsfront.Spec[rollbackRefreshInput, refreshOutput] {
	return awsfront.Spec[rollbackRefreshInput, refreshOutput]{
		About: aboutGroup(a, func(in *rollbackRefreshInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *rollbackRefreshInput) (*refreshOutput, error) {
			return a.endRefresh(ctx, in.AutoScalingGroupName, v1alpha1.RefreshRolledBack)
		},
	}
}

func (a *api) endRefresh(ctx context.Context, name string, end v1alpha1.RefreshEnd) (*refreshOutput, error) {
	out := &refreshOutput{}
	return out, a.changeOwn(ctx, name, rolledOut, func(g *group) error {
		r := g.refresh()
		switch {
		case r == nil || g.own.Spec.Refresh.Ended != "" && g.own.Spec.Refresh.Ended != end:
			return awsfault.Errorf("ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group %s", g.name)
		case end == v1alpha1.RefreshRolledBack && !reversible(g.own.Spec, g.own.Spec.Refresh):
			return awsfault.Errorf("IrreversibleInstanceRefresh", "The instance refresh %s cannot be rolled back: it has no DesiredConfiguration, or a launch template's version is $Latest or $Default. Cancel it instead", r.ID)
		}
		g.own.Spec.Refresh.Ended, out.InstanceRefreshID = end, r.ID
		return nil
	})
}

type shownRefresh struct {
	AutoScalingGroupName, InstanceRefreshID, Status, StatusReason, Strategy string
	StartTime                                                               time.Time
	EndTime                                                                 *time.Time
	InstancesToUpdate, PercentageComplete                                   *int32
	DesiredConfiguration                                                    *launches
	Preferences                                                             *preferences
}

type describeRefreshesInput struct {
	AutoScalingGroupName string
	InstanceRefreshIDs   []string
	MaxRecords           *int32
	NextToken            string
}

type describeRefreshesOutput struct {
	InstanceRefreshes []shownRefresh
	NextToken         string
}

func describeInstanceRefreshes(a *api) awsfront.Spec[describeRefreshesInput, describeRefreshesOutput] {
	return awsfront.Spec[describeRefreshesInput, describeRefreshesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeRefreshesInput) (*describeRefreshesOutput, error) {
			g, err := a.group(ctx, in.AutoScalingGroupName)
			if err != nil {
				return nil, err
			}
			out := &describeRefreshesOutput{InstanceRefreshes: []shownRefresh{}}
			if g.own == nil {
				return out, nil
			}
			all := slices.Clone(g.own.Status.Refreshes)
			if r := g.refresh(); r != nil && r.Status == v1alpha1.RefreshPending {
				all = append(all, *r)
			}
			slices.Reverse(all) // the newest first
			var shown []shownRefresh
			for _, r := range all {
				if len(in.InstanceRefreshIDs) == 0 || slices.Contains(in.InstanceRefreshIDs, r.ID) {
					shown = append(shown, showRefresh(g.name, r))
				}
			}
			out.InstanceRefreshes, out.NextToken, err = awsresource.Page(a.Account, call, []any{in.AutoScalingGroupName, in.InstanceRefreshIDs}, shown, shownRefresh.key, in.MaxRecords, in.NextToken)
			return out, err
		},
	}
}

// key orders refreshes, the newest first.
func (r shownRefresh) key() string {
	return activity{StartTime: r.StartTime, ActivityID: r.InstanceRefreshID}.key()
}

func showRefresh(group string, r v1alpha1.RefreshStatus) shownRefresh {
	shown := shownRefresh{
		AutoScalingGroupName: group, InstanceRefreshID: r.ID, Status: string(r.Status), StatusReason: r.Reason, Strategy: "Rolling", StartTime: r.StartTime.Time,
	}
	if r.EndTime != nil {
		shown.EndTime = &r.EndTime.Time
	}
	if r.Status != v1alpha1.RefreshPending {
		left, percentage := r.Left, int32(100)
		if r.Total > 0 {
			percentage = max(0, (r.Total-r.Left)*100/r.Total)
		}
		shown.InstancesToUpdate, shown.PercentageComplete = &left, &percentage
	}
	p := r.Asked.Preferences
	shown.Preferences = &preferences{
		AutoRollback: &p.AutoRollback, SkipMatching: &p.SkipMatching, InstanceWarmup: p.InstanceWarmup, MaxHealthyPercentage: p.MaxHealthyPercentage,
		MinHealthyPercentage: p.MinHealthyPercentage, ScaleInProtectedInstances: p.ScaleInProtectedInstances,
	}
	if t, m := r.Asked.LaunchTemplate, r.Asked.MixedInstancesPolicy; t != nil || m != nil {
		shown.DesiredConfiguration = &launches{}
		if t != nil {
			shown.DesiredConfiguration.LaunchTemplate = showReference(*t)
		}
		if m != nil {
			shown.DesiredConfiguration.MixedInstancesPolicy = showMixed(m)
		}
	}
	return shown
}
