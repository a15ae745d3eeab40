// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// ownGroup is the group that the tests below make.
const ownGroup = "live-own"

// becomes waits until the instances of the group are in these states, sorted.
func (w *world) becomes(states ...types.LifecycleState) {
	w.Helper()
	w.eventually(patience, func() error {
		groups := need(w.autoscaling.DescribeAutoScalingGroups(w.ctx(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{ownGroup}})).AutoScalingGroups
		var is []types.LifecycleState
		for _, i := range groups[0].Instances {
			is, w.notes["own"] = append(is, i.LifecycleState), *i.InstanceId
		}
		if slices.Sort(is); !slices.Equal(is, states) {
			return fmt.Errorf("instances in %v, want %v", is, states)
		}
		return nil
	})
}

// ownGroupActions are tests about a group of its own, with one instance at a time.
func ownGroupActions() []action {
	name, hook := aws.String(ownGroup), aws.String("up")
	id := func(w *world) []string { return []string{w.notes["own"]} }
	return slices.Concat([]action{
		{"CreateAutoScalingGroup", func(w *world) {
			made := need(w.ec2.CreateLaunchTemplate(w.ctx(), &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: name, LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String(w.notes["ami"]), InstanceType: ec2types.InstanceTypeT3Small},
			}))
			w.notes["ownTemplate"] = *made.LaunchTemplate.LaunchTemplateId
			in := &autoscaling.CreateAutoScalingGroupInput{
				AutoScalingGroupName: name, MinSize: aws.Int32(0), MaxSize: aws.Int32(2), DesiredCapacity: aws.Int32(1), VPCZoneIdentifier: aws.String(w.subnets[0]),
				LaunchTemplate:                 &types.LaunchTemplateSpecification{LaunchTemplateId: made.LaunchTemplate.LaunchTemplateId, Version: aws.String("1")},
				LifecycleHookSpecificationList: []types.LifecycleHookSpecification{{LifecycleHookName: hook, LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"), HeartbeatTimeout: aws.Int32(600)}},
			}
			need(w.autoscaling.CreateAutoScalingGroup(w.ctx(), in))
			_, err := w.autoscaling.CreateAutoScalingGroup(w.ctx(), in)
			w.refused("AlreadyExists", err)
			w.becomes(types.LifecycleStatePendingWait)
		}},
		{"RecordLifecycleActionHeartbeat", func(w *world) {
			need(w.autoscaling.RecordLifecycleActionHeartbeat(w.ctx(), &autoscaling.RecordLifecycleActionHeartbeatInput{AutoScalingGroupName: name, LifecycleHookName: hook, InstanceId: &id(w)[0]}))
			_, err := w.autoscaling.RecordLifecycleActionHeartbeat(w.ctx(), &autoscaling.RecordLifecycleActionHeartbeatInput{AutoScalingGroupName: name, LifecycleHookName: hook, InstanceId: aws.String("i-0123456789abcdef0")})
			w.refused("ValidationError", err)
		}},
		{"CompleteLifecycleAction", func(w *world) {
			need(w.autoscaling.CompleteLifecycleAction(w.ctx(), &autoscaling.CompleteLifecycleActionInput{AutoScalingGroupName: name, LifecycleHookName: hook, InstanceId: &id(w)[0], LifecycleActionResult: aws.String("CONTINUE")}))
			w.becomes(types.LifecycleStateInService)
		}},
		{"PutLifecycleHook", func(w *world) {
			need(w.autoscaling.PutLifecycleHook(w.ctx(), &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: name, LifecycleHookName: aws.String("down"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_TERMINATING")}))
			out := need(w.autoscaling.DescribeLifecycleHooks(w.ctx(), &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: name}))
			w.has(out, "LifecycleHooks[].LifecycleHookName", "LifecycleHooks[].LifecycleTransition", "LifecycleHooks[].HeartbeatTimeout", "LifecycleHooks[].GlobalTimeout", "LifecycleHooks[].DefaultResult")
		}},
		{"DeleteLifecycleHook", func(w *world) {
			for _, name := range []string{"up", "down"} {
				need(w.autoscaling.DeleteLifecycleHook(w.ctx(), &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: aws.String(ownGroup), LifecycleHookName: aws.String(name)}))
			}
		}},
		{"SetInstanceHealth", func(w *world) {
			need(w.autoscaling.SetInstanceHealth(w.ctx(), &autoscaling.SetInstanceHealthInput{InstanceId: &id(w)[0], HealthStatus: aws.String("Healthy")}))
			_, err := w.autoscaling.SetInstanceHealth(w.ctx(), &autoscaling.SetInstanceHealthInput{InstanceId: aws.String("i-0123456789abcdef0"), HealthStatus: aws.String("Unhealthy")})
			w.refused("ValidationError", err)
		}},
		{"EnterStandby", func(w *world) {
			out := need(w.autoscaling.EnterStandby(w.ctx(), &autoscaling.EnterStandbyInput{AutoScalingGroupName: name, InstanceIds: id(w), ShouldDecrementDesiredCapacity: aws.Bool(true)}))
			w.has(out, "Activities[].ActivityId", "Activities[].Cause", "Activities[].Description", "Activities[].StartTime", "Activities[].StatusCode")
			w.becomes(types.LifecycleStateStandby)
		}},
		{"ExitStandby", func(w *world) {
			w.has(need(w.autoscaling.ExitStandby(w.ctx(), &autoscaling.ExitStandbyInput{AutoScalingGroupName: name, InstanceIds: id(w)})), "Activities[].ActivityId", "Activities[].Description")
			w.becomes(types.LifecycleStateInService)
		}},
		{"DetachInstances", func(w *world) {
			own := id(w)[0]
			w.has(need(w.autoscaling.DetachInstances(w.ctx(), &autoscaling.DetachInstancesInput{AutoScalingGroupName: name, InstanceIds: []string{own}, ShouldDecrementDesiredCapacity: aws.Bool(true)})), "Activities[].ActivityId")
			w.becomes()
			w.notes["own"] = own
		}},
		{"AttachInstances", func(w *world) {
			need(w.autoscaling.AttachInstances(w.ctx(), &autoscaling.AttachInstancesInput{AutoScalingGroupName: name, InstanceIds: id(w)}))
			w.becomes(types.LifecycleStateInService)
		}},
	}, scheduledActions(name), refreshActions(name), []action{
		{"DeleteAutoScalingGroup", func(w *world) {
			_, err := w.autoscaling.DeleteAutoScalingGroup(w.ctx(), &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: name})
			w.refused("ResourceInUse", err)
			need(w.autoscaling.DeleteAutoScalingGroup(w.ctx(), &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: name, ForceDelete: aws.Bool(true)}))
			w.eventually(patience, func() error {
				if left := need(w.autoscaling.DescribeAutoScalingGroups(w.ctx(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{ownGroup}})).AutoScalingGroups; len(left) > 0 {
					return fmt.Errorf("%+v is left", left[0].Instances)
				}
				return nil
			})
			need(w.ec2.DeleteLaunchTemplate(w.ctx(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String(w.notes["ownTemplate"])}))
		}},
	})
}

func scheduledActions(name *string) []action {
	in := &autoscaling.DescribeScheduledActionsInput{AutoScalingGroupName: name}
	return []action{
		{"PutScheduledUpdateGroupAction", func(w *world) {
			need(w.autoscaling.PutScheduledUpdateGroupAction(w.ctx(), &autoscaling.PutScheduledUpdateGroupActionInput{
				AutoScalingGroupName: name, ScheduledActionName: aws.String("night"), Recurrence: aws.String("0 22 * * *"), TimeZone: aws.String("Europe/Berlin"), DesiredCapacity: aws.Int32(0),
			}))
			_, err := w.autoscaling.PutScheduledUpdateGroupAction(w.ctx(), &autoscaling.PutScheduledUpdateGroupActionInput{AutoScalingGroupName: name, ScheduledActionName: aws.String("bad"), Recurrence: aws.String("x"), DesiredCapacity: aws.Int32(0)})
			w.refused("ValidationError", err)
		}},
		{"BatchPutScheduledUpdateGroupAction", func(w *world) {
			out := need(w.autoscaling.BatchPutScheduledUpdateGroupAction(w.ctx(), &autoscaling.BatchPutScheduledUpdateGroupActionInput{
				AutoScalingGroupName: name, ScheduledUpdateGroupActions: []types.ScheduledUpdateGroupActionRequest{{ScheduledActionName: aws.String("later"), StartTime: aws.Time(time.Now().Add(time.Hour)), MaxSize: aws.Int32(2)}},
			}))
			if len(out.FailedScheduledUpdateGroupActions) != 0 {
				w.Errorf("%+v", out.FailedScheduledUpdateGroupActions)
			}
		}},
		{"DescribeScheduledActions", func(w *world) {
			out := need(w.autoscaling.DescribeScheduledActions(w.ctx(), in))
			if w.has(out, "ScheduledUpdateGroupActions[].ScheduledActionName", "ScheduledUpdateGroupActions[].ScheduledActionARN", "ScheduledUpdateGroupActions[].StartTime"); len(out.ScheduledUpdateGroupActions) != 2 {
				w.Errorf("%+v", out.ScheduledUpdateGroupActions)
			}
		}},
		{"DeleteScheduledAction", func(w *world) {
			need(w.autoscaling.DeleteScheduledAction(w.ctx(), &autoscaling.DeleteScheduledActionInput{AutoScalingGroupName: name, ScheduledActionName: aws.String("night")}))
		}},
		{"BatchDeleteScheduledAction", func(w *world) {
			need(w.autoscaling.BatchDeleteScheduledAction(w.ctx(), &autoscaling.BatchDeleteScheduledActionInput{AutoScalingGroupName: name, ScheduledActionNames: []string{"later"}}))
			if out := need(w.autoscaling.DescribeScheduledActions(w.ctx(), in)); len(out.ScheduledUpdateGroupActions) != 0 {
				w.Errorf("%+v", out.ScheduledUpdateGroupActions)
			}
		}},
	}
}

func refreshActions(name *string) []action {
	ends := func(w *world, id *string, want types.InstanceRefreshStatus) {
		w.Helper()
		w.eventually(patience, func() error {
			all := need(w.autoscaling.DescribeInstanceRefreshes(w.ctx(), &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: name, InstanceRefreshIds: []string{*id}})).InstanceRefreshes
			if len(all) != 1 || all[0].Status != want {
				return fmt.Errorf("%+v, want %s", all, want)
			}
			return nil
		})
	}
	slowly := &types.RefreshPreferences{MinHealthyPercentage: aws.Int32(100), MaxHealthyPercentage: aws.Int32(200), InstanceWarmup: aws.Int32(3600)}
	return []action{
		{"StartInstanceRefresh", func(w *world) {
			in := &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: name, Preferences: slowly}
			w.notes["refresh"] = *need(w.autoscaling.StartInstanceRefresh(w.ctx(), in)).InstanceRefreshId
			_, err := w.autoscaling.StartInstanceRefresh(w.ctx(), in)
			w.refused("InstanceRefreshInProgress", err)
		}},
		{"CancelInstanceRefresh", func(w *world) {
			id := need(w.autoscaling.CancelInstanceRefresh(w.ctx(), &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: name})).InstanceRefreshId
			if *id != w.notes["refresh"] {
				w.Errorf("%s was cancelled", *id)
			}
			ends(w, id, types.InstanceRefreshStatusCancelled)
			_, err := w.autoscaling.CancelInstanceRefresh(w.ctx(), &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: name})
			w.refused("ActiveInstanceRefreshNotFound", err)
		}},
		{"RollbackInstanceRefresh", func(w *world) {
			template := aws.String(w.notes["ownTemplate"])
			need(w.ec2.CreateLaunchTemplateVersion(w.ctx(), &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateId: template, SourceVersion: aws.String("1"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: ec2types.InstanceTypeT3Medium}}))
			id := need(w.autoscaling.StartInstanceRefresh(w.ctx(), &autoscaling.StartInstanceRefreshInput{
				AutoScalingGroupName: name, Preferences: slowly, DesiredConfiguration: &types.DesiredConfiguration{LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateId: template, Version: aws.String("2")}},
			})).InstanceRefreshId
			need(w.autoscaling.RollbackInstanceRefresh(w.ctx(), &autoscaling.RollbackInstanceRefreshInput{AutoScalingGroupName: name}))
			w.eventually(patience, func() error {
				all := need(w.autoscaling.DescribeInstanceRefreshes(w.ctx(), &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: name, InstanceRefreshIds: []string{*id}})).InstanceRefreshes
				if s := all[0].Status; s != types.InstanceRefreshStatusRollbackSuccessful && s != types.InstanceRefreshStatusRollbackInProgress {
					return fmt.Errorf("%s", s)
				}
				return nil
			})
		}},
	}
}
