// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/cron"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/scalingplan"
)

// scheduledInput is a scheduled action in a request.
type scheduledInput struct {
	ScheduledActionName, Recurrence, TimeZone string
	StartTime, EndTime                        *time.Time
	MinSize, MaxSize, DesiredCapacity         *int32
}

type putScheduledInput struct {
	scheduledInput
	AutoScalingGroupName string
	Time                 *time.Time // an earlier name of StartTime
}

// maxScheduled is Auto Scaling's limit of scheduled actions of a group.
const maxScheduled = 125

func putScheduledAction(a *api) awsfront.Spec[putScheduledInput, struct{}] {
	return awsfront.Spec[putScheduledInput, struct{}]{
		About: aboutGroup(a, func(in *putScheduledInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, call *awsfront.Call, in *putScheduledInput) (*struct{}, error) {
			if in.StartTime == nil {
				in.StartTime = in.Time
			}
			return nil, a.change(ctx, in.AutoScalingGroupName, func(g *group) error { return g.putScheduled(in.scheduledInput, call.Now) })
		},
	}
}

// putScheduled adds a scheduled action to a group, or replaces the one of the name.
func (g *group) putScheduled(in scheduledInput, now time.Time) error {
	action := v1alpha1.ScheduledAction{
		Name: in.ScheduledActionName, Recurrence: in.Recurrence, TimeZone: in.TimeZone, MinSize: in.MinSize, MaxSize: in.MaxSize, DesiredCapacity: in.DesiredCapacity, Done: metav1.NewTime(now),
	}
	if in.StartTime != nil {
		action.StartTime = new(metav1.NewTime(*in.StartTime))
	}
	if in.EndTime != nil {
		action.EndTime = new(metav1.NewTime(*in.EndTime))
	}
	if err := checkScheduled(action, now); err != nil {
		return err
	}
	for name, size := range map[string]*int32{"MinSize": in.MinSize, "MaxSize": in.MaxSize, "DesiredCapacity": in.DesiredCapacity} {
		if size != nil && (*size < 0 || *size > g.most()) {
			return awsfault.Errorf(invalid, "%s of the scheduled action %s is %d: it must be from 0 to %d", name, action.Name, *size, g.most())
		}
	}
	all := g.scaling()
	if _, err := g.sizes().Change(in.MinSize, in.MaxSize, nil); err != nil && in.MinSize != nil && in.MaxSize != nil {
		return awsfault.Errorf(invalid, "%s", err.Error())
	}
	if in.DesiredCapacity != nil && (in.MinSize != nil && *in.DesiredCapacity < *in.MinSize || in.MaxSize != nil && *in.DesiredCapacity > *in.MaxSize) {
		_, err := scalingplan.Sizes{Max: *in.DesiredCapacity}.Change(in.MinSize, in.MaxSize, in.DesiredCapacity)
		return awsfault.Errorf(invalid, "%v", err)
	}
	at := slices.IndexFunc(all.ScheduledActions, func(s v1alpha1.ScheduledAction) bool { return s.Name == action.Name })
	switch {
	case at >= 0:
		all.ScheduledActions[at] = action
	case len(all.ScheduledActions) >= maxScheduled:
		return awsfault.Errorf("LimitExceeded", "The group %s has %d scheduled actions, and may have no more: delete one first", g.name, len(all.ScheduledActions))
	default:
		all.ScheduledActions = append(all.ScheduledActions, action)
	}
	return nil
}

func checkScheduled(s v1alpha1.ScheduledAction, now time.Time) error {
	zone, err := time.LoadLocation(s.TimeZone)
	switch {
	case s.Name == "" || len(s.Name) > maxName:
		return awsfault.Errorf(invalid, "The scheduled action's name %.64q is not valid: it must have 1 to %d characters", s.Name, maxName)
	case err != nil || s.TimeZone == "Local":
		return awsfault.Errorf(invalid, "The time zone %.64q is not known: it must be a name of the IANA Time Zone Database, such as Europe/Berlin", s.TimeZone)
	case s.MinSize == nil && s.MaxSize == nil && s.DesiredCapacity == nil:
		return awsfault.Errorf(invalid, "The scheduled action %s changes no size: write at least one of MinSize, MaxSize and DesiredCapacity", s.Name)
	case s.Recurrence == "" && s.StartTime == nil:
		return awsfault.Errorf(invalid, "The scheduled action %s has no time: write Recurrence, StartTime, or both", s.Name)
	case s.Recurrence == "" && !s.StartTime.After(now):
		return awsfault.Errorf(invalid, "Given start time is in the past: %s", s.StartTime.UTC().Format(time.RFC3339))
	case s.EndTime != nil && (!s.EndTime.After(now) || s.StartTime != nil && !s.EndTime.After(s.StartTime.Time)):
		return awsfault.Errorf(invalid, "The end time %s must be after the start time, and not in the past", s.EndTime.UTC().Format(time.RFC3339))
	}
	if s.Recurrence != "" {
		if _, err := cron.Parse(s.Recurrence); err != nil {
			return awsfault.Errorf(invalid, "Given recurrence string: %v", err)
		}
	}
	if scalingplan.NextRun(s, zone).IsZero() {
		return awsfault.Errorf(invalid, "The scheduled action %s would never run: %s", s.Name, s.Recurrence)
	}
	return nil
}

type batchPutInput struct {
	AutoScalingGroupName        string
	ScheduledUpdateGroupActions []scheduledInput
}

type failedScheduled struct{ ScheduledActionName, ErrorCode, ErrorMessage string }

type batchPutOutput struct{ FailedScheduledUpdateGroupActions []failedScheduled }

func batchPutScheduled(a *api) awsfront.Spec[batchPutInput, batchPutOutput] {
	return awsfront.Spec[batchPutInput, batchPutOutput]{
		About: aboutGroup(a, func(in *batchPutInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, call *awsfront.Call, in *batchPutInput) (*batchPutOutput, error) {
			var out *batchPutOutput
			return out, a.change(ctx, in.AutoScalingGroupName, func(g *group) error {
				out = &batchPutOutput{[]failedScheduled{}}
				for _, s := range in.ScheduledUpdateGroupActions {
					if err := g.putScheduled(s, call.Now); err != nil {
						fault := refusal(err)
						if fault == nil {
							return err
						}
						out.FailedScheduledUpdateGroupActions = append(out.FailedScheduledUpdateGroupActions, failedScheduled{s.ScheduledActionName, fault.Code, fault.Message})
					}
				}
				return nil
			})
		},
	}
}

type deleteScheduledInput struct{ AutoScalingGroupName, ScheduledActionName string }

func deleteScheduledAction(a *api) awsfront.Spec[deleteScheduledInput, struct{}] {
	return awsfront.Spec[deleteScheduledInput, struct{}]{
		About: aboutGroup(a, func(in *deleteScheduledInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteScheduledInput) (*struct{}, error) {
			return nil, a.change(ctx, in.AutoScalingGroupName, func(g *group) error { return g.deleteScheduled(in.ScheduledActionName) })
		},
	}
}

func (g *group) deleteScheduled(name string) error {
	all := g.scaling()
	had := len(all.ScheduledActions)
	all.ScheduledActions = slices.DeleteFunc(all.ScheduledActions, func(s v1alpha1.ScheduledAction) bool { return s.Name == name })
	if len(all.ScheduledActions) == had {
		return awsfault.Errorf(invalid, "Scheduled action name not found: %.255s of the group %s", name, g.name)
	}
	return nil
}

type batchDeleteInput struct {
	AutoScalingGroupName string
	ScheduledActionNames []string
}

type batchDeleteOutput struct{ FailedScheduledActions []failedScheduled }

func batchDeleteScheduled(a *api) awsfront.Spec[batchDeleteInput, batchDeleteOutput] {
	return awsfront.Spec[batchDeleteInput, batchDeleteOutput]{
		About: aboutGroup(a, func(in *batchDeleteInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *batchDeleteInput) (*batchDeleteOutput, error) {
			var out *batchDeleteOutput
			return out, a.change(ctx, in.AutoScalingGroupName, func(g *group) error {
				out = &batchDeleteOutput{[]failedScheduled{}}
				for _, name := range in.ScheduledActionNames {
					if fault := refusal(g.deleteScheduled(name)); fault != nil {
						out.FailedScheduledActions = append(out.FailedScheduledActions, failedScheduled{name, fault.Code, fault.Message})
					}
				}
				return nil
			})
		},
	}
}

type shownScheduled struct {
	AutoScalingGroupName, ScheduledActionName, ScheduledActionARN, Recurrence, TimeZone string
	StartTime, EndTime, Time                                                            *time.Time
	MinSize, MaxSize, DesiredCapacity                                                   *int32
}

type describeScheduledInput struct {
	AutoScalingGroupName, NextToken string
	ScheduledActionNames            []string
	StartTime, EndTime              *time.Time
	MaxRecords                      *int32
}

type describeScheduledOutput struct {
	ScheduledUpdateGroupActions []shownScheduled
	NextToken                   string
}

func describeScheduledActions(a *api) awsfront.Spec[describeScheduledInput, describeScheduledOutput] {
	return awsfront.Spec[describeScheduledInput, describeScheduledOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeScheduledInput) (*describeScheduledOutput, error) {
			all, err := a.groups(ctx)
			if err != nil {
				return nil, err
			}
			if name := in.AutoScalingGroupName; name != "" {
				if all = slices.DeleteFunc(all, func(g *group) bool { return g.name != name }); len(all) == 0 {
					return nil, noGroup(name)
				}
			}
			shown := []shownScheduled{}
			for _, g := range all {
				for _, s := range g.kept().ScheduledActions {
					one := a.showScheduled(call, g, s)
					named := len(in.ScheduledActionNames) == 0 || slices.Contains(in.ScheduledActionNames, s.Name)
					if named && (in.StartTime == nil || !one.StartTime.Before(*in.StartTime)) && (in.EndTime == nil || !one.StartTime.After(*in.EndTime)) {
						shown = append(shown, one)
					}
				}
			}
			out := &describeScheduledOutput{}
			out.ScheduledUpdateGroupActions, out.NextToken, err = awsresource.Page(a.Account, call, []any{in.AutoScalingGroupName, in.ScheduledActionNames, in.StartTime, in.EndTime}, shown,
				func(s shownScheduled) string { return s.AutoScalingGroupName + "\n" + s.ScheduledActionName }, in.MaxRecords, in.NextToken)
			return out, err
		},
	}
}

// showScheduled shows a scheduled action. Its start is the next time at which it is due.
func (a *api) showScheduled(call *awsfront.Call, g *group, s v1alpha1.ScheduledAction) shownScheduled {
	shown := shownScheduled{
		AutoScalingGroupName: g.name, ScheduledActionName: s.Name, Recurrence: s.Recurrence, TimeZone: s.TimeZone, MinSize: s.MinSize, MaxSize: s.MaxSize, DesiredCapacity: s.DesiredCapacity,
		ScheduledActionARN: a.ARN(call, "scheduledUpdateGroupAction:"+scalingplan.ActivityID("scheduled", g.uid(), s.Name)+":autoScalingGroupName/"+g.name+":scheduledActionName/"+s.Name),
	}
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	next := scalingplan.NextRun(s, zone).UTC()
	shown.StartTime, shown.Time = &next, &next
	if s.EndTime != nil {
		shown.EndTime = new(s.EndTime.UTC())
	}
	return shown
}
