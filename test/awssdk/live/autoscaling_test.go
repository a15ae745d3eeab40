// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// autoscalingActions are tests about the group of the one node group that the account began with.
func autoscalingActions() []action {
	name := func(w *world) *string { return aws.String(w.notes["asg"]) }
	group := func(w *world) types.AutoScalingGroup {
		return need(w.autoscaling.DescribeAutoScalingGroups(w.ctx(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{*name(w)}})).AutoScalingGroups[0]
	}
	instance := func(w *world) types.AutoScalingInstanceDetails {
		out := need(w.autoscaling.DescribeAutoScalingInstances(w.ctx(), &autoscaling.DescribeAutoScalingInstancesInput{InstanceIds: []string{w.notes["asgInstance"]}}))
		if len(out.AutoScalingInstances) != 1 {
			w.Fatalf("%+v", out.AutoScalingInstances)
		}
		return out.AutoScalingInstances[0]
	}
	tag := func(w *world) types.Tag {
		return types.Tag{Key: aws.String("team"), Value: aws.String("a"), ResourceId: name(w), ResourceType: aws.String("auto-scaling-group"), PropagateAtLaunch: aws.Bool(true)}
	}
	return []action{
		{"DescribeAutoScalingGroups", func(w *world) {
			out := need(w.autoscaling.DescribeAutoScalingGroups(w.ctx(), &autoscaling.DescribeAutoScalingGroupsInput{}))
			w.has(
				out, "AutoScalingGroups[].AutoScalingGroupName", "AutoScalingGroups[].AutoScalingGroupARN", "AutoScalingGroups[].MinSize", "AutoScalingGroups[].MaxSize",
				"AutoScalingGroups[].DesiredCapacity", "AutoScalingGroups[].AvailabilityZones", "AutoScalingGroups[].Tags[].Key",
			)
			w.notes["asg"] = *out.AutoScalingGroups[0].AutoScalingGroupName
		}},
		{"DescribeScalingActivities", func(w *world) {
			need(w.autoscaling.DescribeScalingActivities(w.ctx(), &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: name(w)}))
		}},
		{"UpdateAutoScalingGroup", func(w *world) {
			need(w.autoscaling.UpdateAutoScalingGroup(w.ctx(), &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: name(w), MinSize: aws.Int32(0), MaxSize: aws.Int32(3)}))
			if is := group(w); *is.MinSize != 0 || *is.MaxSize != 3 {
				w.Errorf("sizes from %d to %d", *is.MinSize, *is.MaxSize)
			}
			_, err := w.autoscaling.UpdateAutoScalingGroup(w.ctx(), &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("none"), MaxSize: aws.Int32(3)})
			w.refused("ValidationError", err)
		}},
		{"SetDesiredCapacity", func(w *world) {
			need(w.autoscaling.SetDesiredCapacity(w.ctx(), &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: name(w), DesiredCapacity: aws.Int32(1)}))
		}},
		{"DescribeAutoScalingInstances", func(w *world) {
			w.eventually(patience, func() error { // another test may have terminated the one that was there
				for _, i := range group(w).Instances {
					if i.LifecycleState == types.LifecycleStateInService {
						w.notes["asgInstance"] = *i.InstanceId
						return nil
					}
				}
				return fmt.Errorf("instances %+v", group(w).Instances)
			})
			out := need(w.autoscaling.DescribeAutoScalingInstances(w.ctx(), &autoscaling.DescribeAutoScalingInstancesInput{}))
			w.has(out, "AutoScalingInstances[].InstanceId", "AutoScalingInstances[].AutoScalingGroupName", "AutoScalingInstances[].LifecycleState", "AutoScalingInstances[].HealthStatus")
		}},
		{"SetInstanceProtection", func(w *world) {
			for _, on := range []bool{true, false} {
				need(w.autoscaling.SetInstanceProtection(w.ctx(), &autoscaling.SetInstanceProtectionInput{
					AutoScalingGroupName: name(w), InstanceIds: []string{w.notes["asgInstance"]}, ProtectedFromScaleIn: aws.Bool(on),
				}))
				if is := instance(w); *is.ProtectedFromScaleIn != on {
					w.Errorf("%+v", is)
				}
			}
		}},
		{"CreateOrUpdateTags", func(w *world) {
			need(w.autoscaling.CreateOrUpdateTags(w.ctx(), &autoscaling.CreateOrUpdateTagsInput{Tags: []types.Tag{tag(w)}}))
		}},
		{"DescribeTags", func(w *world) {
			out := need(w.autoscaling.DescribeTags(w.ctx(), &autoscaling.DescribeTagsInput{Filters: []types.Filter{{Name: aws.String("key"), Values: []string{"team"}}}}))
			if w.has(out, "Tags[].ResourceId", "Tags[].ResourceType", "Tags[].Value"); len(out.Tags) != 1 || *out.Tags[0].Value != "a" || !*out.Tags[0].PropagateAtLaunch {
				w.Errorf("%+v", out.Tags)
			}
		}},
		{"DeleteTags", func(w *world) {
			need(w.autoscaling.DeleteTags(w.ctx(), &autoscaling.DeleteTagsInput{Tags: []types.Tag{tag(w)}}))
			if out := need(w.autoscaling.DescribeTags(w.ctx(), &autoscaling.DescribeTagsInput{Filters: []types.Filter{{Name: aws.String("key"), Values: []string{"team"}}}})); len(out.Tags) != 0 {
				w.Errorf("%+v", out.Tags)
			}
		}},
		{"SuspendProcesses", func(w *world) {
			need(w.autoscaling.SuspendProcesses(w.ctx(), &autoscaling.SuspendProcessesInput{AutoScalingGroupName: name(w), ScalingProcesses: []string{"AZRebalance"}}))
			if is := group(w).SuspendedProcesses; len(is) != 1 || *is[0].ProcessName != "AZRebalance" {
				w.Errorf("%+v", is)
			}
		}},
		{"ResumeProcesses", func(w *world) {
			need(w.autoscaling.ResumeProcesses(w.ctx(), &autoscaling.ResumeProcessesInput{AutoScalingGroupName: name(w)}))
			if is := group(w).SuspendedProcesses; len(is) != 0 {
				w.Errorf("%+v", is)
			}
		}},
		{"EnableMetricsCollection", func(w *world) {
			need(w.autoscaling.EnableMetricsCollection(w.ctx(), &autoscaling.EnableMetricsCollectionInput{AutoScalingGroupName: name(w), Granularity: aws.String("1Minute"), Metrics: []string{"GroupMinSize"}}))
			if is := group(w).EnabledMetrics; len(is) != 1 || *is[0].Metric != "GroupMinSize" {
				w.Errorf("%+v", is)
			}
		}},
		{"DisableMetricsCollection", func(w *world) {
			need(w.autoscaling.DisableMetricsCollection(w.ctx(), &autoscaling.DisableMetricsCollectionInput{AutoScalingGroupName: name(w)}))
			if is := group(w).EnabledMetrics; len(is) != 0 {
				w.Errorf("%+v", is)
			}
		}},
		{"PutWarmPool", func(w *world) {
			need(w.autoscaling.PutWarmPool(w.ctx(), &autoscaling.PutWarmPoolInput{
				AutoScalingGroupName: name(w), MaxGroupPreparedCapacity: aws.Int32(0), PoolState: types.WarmPoolStateRunning, InstanceReusePolicy: &types.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(true)},
			}))
			if is := group(w); is.WarmPoolConfiguration == nil || is.WarmPoolConfiguration.PoolState != types.WarmPoolStateRunning || *is.WarmPoolSize != 0 {
				w.Errorf("%+v", is.WarmPoolConfiguration)
			}
			_, err := w.autoscaling.PutWarmPool(w.ctx(), &autoscaling.PutWarmPoolInput{AutoScalingGroupName: name(w), PoolState: types.WarmPoolStateHibernated})
			w.refused("ValidationError", err)
		}},
		{"DescribeWarmPool", func(w *world) {
			out := need(w.autoscaling.DescribeWarmPool(w.ctx(), &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: name(w)}))
			if w.has(out, "WarmPoolConfiguration.MaxGroupPreparedCapacity"); !*out.WarmPoolConfiguration.InstanceReusePolicy.ReuseOnScaleIn || len(out.Instances) != 0 {
				w.Errorf("%+v", out)
			}
		}},
		{"DeleteWarmPool", func(w *world) {
			need(w.autoscaling.DeleteWarmPool(w.ctx(), &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: name(w)}))
			if is := group(w); is.WarmPoolConfiguration != nil {
				w.Errorf("%+v", is.WarmPoolConfiguration)
			}
			_, err := w.autoscaling.DeleteWarmPool(w.ctx(), &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: name(w)})
			w.refused("ValidationError", err)
		}},
		{"DescribeLaunchConfigurations", func(w *world) {
			if out := need(w.autoscaling.DescribeLaunchConfigurations(w.ctx(), &autoscaling.DescribeLaunchConfigurationsInput{})); len(out.LaunchConfigurations) != 0 {
				w.Errorf("%+v", out.LaunchConfigurations)
			}
		}},
		{"DescribeLifecycleHooks", func(w *world) {
			if out := need(w.autoscaling.DescribeLifecycleHooks(w.ctx(), &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: name(w)})); len(out.LifecycleHooks) != 0 {
				w.Errorf("%+v", out.LifecycleHooks)
			}
		}},
		{"DescribePolicies", func(w *world) {
			if out := need(w.autoscaling.DescribePolicies(w.ctx(), &autoscaling.DescribePoliciesInput{AutoScalingGroupName: name(w)})); len(out.ScalingPolicies) != 0 {
				w.Errorf("%+v", out.ScalingPolicies)
			}
		}},
		{"DescribeInstanceRefreshes", func(w *world) {
			if out := need(w.autoscaling.DescribeInstanceRefreshes(w.ctx(), &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: name(w)})); len(out.InstanceRefreshes) != 0 {
				w.Errorf("%+v", out.InstanceRefreshes)
			}
		}},
		{"TerminateInstanceInAutoScalingGroup", func(w *world) {
			out := need(w.autoscaling.TerminateInstanceInAutoScalingGroup(w.ctx(), &autoscaling.TerminateInstanceInAutoScalingGroupInput{
				InstanceId: aws.String(w.notes["asgInstance"]), ShouldDecrementDesiredCapacity: aws.Bool(true),
			}))
			w.has(out, "Activity.ActivityId", "Activity.StatusCode", "Activity.AutoScalingGroupName")
			if is := group(w); *is.DesiredCapacity != 0 {
				w.Errorf("the group is to have %d instances", *is.DesiredCapacity)
			}
			w.eventually(patience, func() error {
				if left := group(w).Instances; len(left) > 0 {
					return fmt.Errorf("%d instances are left, %s the first of them", len(left), *left[0].InstanceId)
				}
				return nil
			})
		}},
	}
}
