// SPDX-License-Identifier: Apache-2.0

package awsactions

func autoscalingActions() []Action {
	return []Action{
		{Name: "CreateAutoScalingGroup", Mark: Real, Resources: []string{"autoScalingGroup"}, Keys: append(tagged(), launched()...)},
		{Name: "DescribeAutoScalingGroups", Mark: Real},
		{Name: "UpdateAutoScalingGroup", Mark: Real, Resources: []string{"autoScalingGroup"}, Keys: launched()},
		{Name: "DeleteAutoScalingGroup", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "DescribeAutoScalingInstances", Mark: Real},
		{Name: "DescribeScalingActivities", Mark: Real},
		{Name: "SetDesiredCapacity", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "TerminateInstanceInAutoScalingGroup", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "CreateOrUpdateTags", Mark: Real, Resources: []string{"autoScalingGroup"}, Keys: tagged()},
		{Name: "DeleteTags", Mark: Real, Resources: []string{"autoScalingGroup"}, Keys: []string{"aws:TagKeys"}},
		{Name: "DescribeTags", Mark: Real},
		{Name: "SetInstanceProtection", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "SetInstanceHealth", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "SuspendProcesses", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "ResumeProcesses", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "EnableMetricsCollection", Mark: Record, Resources: []string{"autoScalingGroup"}},
		{Name: "DisableMetricsCollection", Mark: Record, Resources: []string{"autoScalingGroup"}},
		{Name: "DescribeLaunchConfigurations", Mark: Record},
		{Name: "DescribeLifecycleHooks", Mark: Real},
		{Name: "DescribePolicies", Mark: Record},
		{Name: "DescribeInstanceRefreshes", Mark: Real},
		{Name: "CreateLaunchConfiguration", Mark: Refused, Reason: "Muster has launch templates and no launch configurations"},
		{Name: "DeleteLaunchConfiguration", Mark: Refused, Reason: "Muster has launch templates and no launch configurations"},
		{Name: "StartInstanceRefresh", Mark: Real, Resources: []string{"autoScalingGroup"}, Keys: []string{"autoscaling:InstanceTypes", "autoscaling:LaunchTemplateVersionSpecified"}},
		{Name: "CancelInstanceRefresh", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "RollbackInstanceRefresh", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "PutLifecycleHook", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "DeleteLifecycleHook", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "CompleteLifecycleAction", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "RecordLifecycleActionHeartbeat", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "PutScalingPolicy", Mark: Refused, Reason: "Muster has no metrics to scale by yet: use the Cluster Autoscaler, or scheduled actions"},
		{Name: "DeletePolicy", Mark: Refused, Reason: "Muster has no metrics to scale by yet: use the Cluster Autoscaler, or scheduled actions"},
		{Name: "PutScheduledUpdateGroupAction", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "BatchPutScheduledUpdateGroupAction", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "DeleteScheduledAction", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "BatchDeleteScheduledAction", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "DescribeScheduledActions", Mark: Real},
		{Name: "PutWarmPool", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "DescribeWarmPool", Mark: Real},
		{Name: "DeleteWarmPool", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "AttachTrafficSources", Mark: Refused, Reason: "Muster has no load balancers in Auto Scaling groups yet"},
		{Name: "DetachTrafficSources", Mark: Refused, Reason: "Muster has no load balancers in Auto Scaling groups yet"},
		{Name: "AttachLoadBalancerTargetGroups", Mark: Refused, Reason: "Muster has no load balancers in Auto Scaling groups yet"},
		{Name: "DetachLoadBalancerTargetGroups", Mark: Refused, Reason: "Muster has no load balancers in Auto Scaling groups yet"},
		{Name: "AttachInstances", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "DetachInstances", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "EnterStandby", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "ExitStandby", Mark: Real, Resources: []string{"autoScalingGroup"}},
	}
}

// launched are the keys of requests that say what a group launches.
func launched() []string {
	return []string{"autoscaling:InstanceTypes", "autoscaling:LaunchTemplateVersionSpecified", "autoscaling:MaxSize", "autoscaling:MinSize", "autoscaling:VPCZoneIdentifiers"}
}

func autoscalingResources() []Resource {
	return []Resource{
		{Type: "autoScalingGroup", ARN: "arn:${Partition}:autoscaling:${Region}:${Account}:autoScalingGroup:${GroupId}:autoScalingGroupName/${GroupFriendlyName}"},
	}
}
